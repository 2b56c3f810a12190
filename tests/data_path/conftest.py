import pytest
from fakes.views import Views


@pytest.fixture
def views():
    """Begin mounts that are gone when the test is over."""
    begun = Views()
    yield begun
    begun.close()
