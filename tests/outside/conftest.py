"""A user who has no checkout: directories outside of it, distributions built from it."""

import tempfile
from pathlib import Path

import pytest
from outside.installations import Builder, InterpreterMissingError


@pytest.fixture(scope="session")
def outside():
    """A directory with a short path, as the names of sockets below it are limited, that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="outside-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def builder(outside, pytestconfig):
    """Builds and installs the distributions of the checkout, or takes those of `--distributions`."""
    given = pytestconfig.option.distributions
    return Builder(outside, Path(given).resolve() if given else None)


@pytest.fixture(scope="session")
def install(builder):
    """Install scriptmode: an `Installation`, additional requirements, and a wheel; an interpreter that is missing skips."""

    missing = {}

    def install(installation, *arguments, **options):
        if installation.python not in missing:
            try:
                return builder.environment(installation, *arguments, **options)
            except InterpreterMissingError as error:
                missing[installation.python] = str(error)
        pytest.skip(missing[installation.python])

    return install
