# Everything is set up in .venv (or $SCRIPTMODE_VENV) by .ci/setup; no step needs another to have run before.
SHELL := /bin/bash
VENV := $(or $(SCRIPTMODE_VENV),.venv)
BIN := $(VENV)/bin
# In two processes: most tests wait for others' processes, and tests/conftest.py says which belong together.
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder

.PHONY: demo test test-all test-images check bench docs screens lint setup light packages clean

## Train the Fashion-MNIST network with parameter servers and with Horovod, on this machine.
demo: setup
	$(BIN)/python notebooks/demo.py

## Lint, types and every test, with a Docker daemon that is started for them where none answers.
test: packages setup lint
	.ci/docker run $(PYTEST) -raR

## The same with every combination: all cells of the fault matrix, more random faults, each image with each user.
test-all: PYTEST += --thorough
test-all: test

## Build the training images and test them and the hosts made of them.
test-images: packages setup
	.ci/docker run $(BIN)/python -m pytest -ra tests/containers

## Lint, types and the fast tests: all but those that start jobs, launchers and clusters.
check: light lint
	$(PYTEST) -q -m "not slow and not tf and not mpi and not docker and not live" \
		--ignore=tests/processes --ignore=tests/containers

## The figures that the README shows.
bench: setup
	$(BIN)/python -m tests.benchmarks

## The guides and the API reference, as HTML in build/docs.
docs: setup
	$(BIN)/python -m sphinx -n -W --keep-going -q -d build/docs-trees sdk/docs build/docs
	@echo build/docs/index.html

## Write the screens that the README and the guides show anew, from real jobs.
screens: setup
	$(BIN)/python sdk/docs/screens.py

lint: light
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup:
	@.ci/setup

## The environment without TensorFlow, Open MPI and Horovod, made in seconds; a complete one serves as well.
light:
	@.ci/setup light

## What tests run beside Python: real hosts, ssh, Open MPI 4.
packages:
	@.ci/packages

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
