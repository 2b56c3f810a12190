import pytest
from fakes.views import Views, WatchedObjects


@pytest.fixture
def views():
    """Begin mounts that are gone when the test is over."""
    begun = Views()
    yield begun
    begun.close()


@pytest.fixture
def objects(tmp_path):
    """Make a store of contents by path."""
    control = tmp_path / "control"
    control.mkdir()
    return lambda contents: WatchedObjects(contents, control)
