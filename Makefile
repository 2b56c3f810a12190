# .ci/setup creates the environment in .venv (or $SCRIPTMODE_VENV). Every target can be run first.
SHELL := /bin/bash
# Images for containers often set it; every process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
VENV := $(or $(SCRIPTMODE_VENV),.venv)
BIN := $(VENV)/bin
# In more processes than cores, because most tests wait for others. tests/conftest.py groups tests that must share one.
PYTEST := $(BIN)/python -m pytest --no-loadscope-reorder

.PHONY: demo test test-rest test-all test-thorough test-images chaos foreign check bench docs screens notebooks image-table release lint setup light packages clean

## Train the Fashion-MNIST network with parameter servers and with Horovod, on this machine.
demo: setup
	$(BIN)/python notebooks/demo.py

## Run lint, type checks and every test that needs neither root, Docker nor Slurm, and does not take long.
test: packages setup lint
	$(PYTEST) -n 6 --tier test

## The tests that `make test` leaves out, the cheapest first; start a Docker daemon for them if none answers.
test-rest: setup
	.ci/packages all
	-@.ci/kubernetes >/dev/null
	.ci/docker run $(PYTEST) -n 3 --tier rest

## Both.
test-all: test test-rest

## The same with every cell of the matrices: faults, images, users.
test-thorough: setup lint
	.ci/packages all
	-@.ci/kubernetes >/dev/null
	.ci/docker run $(PYTEST) -n 2 --tier thorough

## Build the training images, and test them and container hosts.
test-images: setup
	.ci/packages all
	.ci/docker run $(BIN)/python -m pytest -ra tests/containers

SEED ?= 1
JOBS ?= 100

## Run JOBS jobs that each meet a fault drawn from SEED, and print what did not end truly; ONLY=INDEX repeats one.
## KILLS=60 kills jobs that train with TensorFlow instead, and compares their weights with those of undisturbed jobs.
chaos: $(if $(KILLS),setup,light)
	PYTHONPATH=tests $(BIN)/python -m $(if $(KILLS),chaos.kills $(SEED) $(KILLS),chaos $(SEED) $(JOBS)) $(if $(ONLY),--only $(ONLY)) $(if $(FAULT),--fault '$(FAULT)') $(if $(RETRIES),--retries $(RETRIES))

## Run suites of other projects against this one, all or those in NAMES, and print a table.
foreign: setup
	$(BIN)/python -m tests.foreign_suites $(NAMES)

## Run lint, type checks and the fast tests: all except those that start jobs, launchers and clusters.
check: light lint
	$(PYTEST) -n 2 -q --tier test -m "not slow and not tf and not mpi" \
		--ignore=tests/processes --ignore=tests/containers --ignore=tests/engines

## Measure and print the figures of the documentation and more, all or those of NAMES="client wire".
bench: setup
	$(BIN)/python -m tests.benchmarks $(if $(WRITE),--write) $(NAMES)

## Build the guides and the API reference as HTML in build/docs.
docs: light
	$(BIN)/python -m sphinx -n -W --keep-going -q -d build/docs-trees sdk/docs build/docs
	@echo build/docs/index.html

## Regenerate the screens and the pictures of the documents from real jobs.
screens: setup
	$(BIN)/python sdk/docs/screens.py

## Run the notebooks (all that need no containers, or those in NAMES) and keep them with their outputs.
notebooks: packages setup
	$(BIN)/python -m tests.notebooks.recording $(NAMES)

## Regenerate the table of AWS's TensorFlow images from the newest sagemaker-core.
image-table: light
	$(BIN)/python .ci/image_table.py

## Make the distributions of a release in dist/, and check them. RELEASING.md describes the rest.
release: light
	.ci/release
	$(BIN)/python -m pytest tests/outside --distributions dist/$$(sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

lint: light
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

setup:
	@.ci/setup

## Create the environment without TensorFlow, Open MPI and Horovod, in seconds; a complete environment is kept.
light:
	@.ci/setup light

## Install the Debian packages that `make test` can use: a browser, shells, Open MPI 4.
packages:
	@.ci/packages

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
