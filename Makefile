# .ci/setup creates the environment in .venv (or $SCRIPTMODE_VENV). Every target can be run first.
SHELL := /bin/bash
VENV := $(or $(SCRIPTMODE_VENV),.venv)
BIN := $(VENV)/bin
# In two processes, because most tests wait for other processes. tests/conftest.py groups tests that must share one.
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder

.PHONY: demo test test-all test-images check bench docs screens notebooks lint setup light packages clean

## Train the Fashion-MNIST network with parameter servers and with Horovod, on this machine.
demo: setup
	$(BIN)/python notebooks/demo.py

## Run lint, type checks and every test; start a Docker daemon for them if none answers.
test: packages setup lint
	.ci/docker run $(PYTEST) -raR

## The same with every combination: all cells of the fault matrix, more random faults, each image with each user.
test-all: PYTEST += --thorough
test-all: test

## Build the training images, and test them and container hosts.
test-images: packages setup
	.ci/docker run $(BIN)/python -m pytest -ra tests/containers

## Run lint, type checks and the fast tests: all except those that start jobs, launchers and clusters.
check: light lint
	$(PYTEST) -q -m "not slow and not tf and not mpi and not docker and not live" \
		--ignore=tests/processes --ignore=tests/containers

## Measure and print the figures in the README.
bench: setup
	$(BIN)/python -m tests.benchmarks

## Build the guides and the API reference as HTML in build/docs.
docs: setup
	$(BIN)/python -m sphinx -n -W --keep-going -q -d build/docs-trees sdk/docs build/docs
	@echo build/docs/index.html

## Regenerate the screens in the README and the guides from real jobs.
screens: setup
	$(BIN)/python sdk/docs/screens.py

## Run the notebooks (all that need no containers, or those in NAMES) and keep them with their outputs.
notebooks: packages setup
	$(BIN)/python -m tests.notebooks.recording $(NAMES)

lint: light
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup:
	@.ci/setup

## Create the environment without TensorFlow, Open MPI and Horovod, in seconds; a complete environment is kept.
light:
	@.ci/setup light

## Install the Debian packages that tests need: namespaces as hosts, ssh, Open MPI 4.
packages:
	@.ci/packages

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
