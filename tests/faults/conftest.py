"""Hosts for the tests of this folder."""

import pytest
from faults.cells import Outcomes
from faults.hosts import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Three hosts that stay up for all tests."""
    hosts = Cluster(3, tmp_path_factory.mktemp("hosts"))
    yield hosts
    hosts.close()


@pytest.fixture(scope="session")
def outcomes(request, tmp_path_factory):
    """What came of the cells that are asked for."""
    parameters = [getattr(item, "callspec", None) and item.callspec.params for item in request.session.items]
    cells = Outcomes([each["cell"] for each in parameters if each and "cell" in each], tmp_path_factory.mktemp("cells"))
    yield cells
    cells.close()
