import pytest
from processes.launchers import Launcher


@pytest.fixture
def launch():
    """Start a host's ``train``; whatever is left at the end is killed."""
    started = []

    def start(base, **kwargs):
        started.append(Launcher(base, **kwargs))
        return started[-1]

    yield start
    for launcher in started:
        launcher.close()
