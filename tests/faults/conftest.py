"""Hosts for the tests of this folder, and the matrix as they print it at the end."""

import pytest
from faults.cells import Outcomes
from faults.hosts import Cluster
from faults.printing import table


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


def pytest_terminal_summary(terminalreporter):
    """Print the cells that were run: what came of each fault, and after how many seconds."""
    results = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            cell = dict(getattr(report, "user_properties", ()))
            if "row" in cell and report.when == "call":
                results.setdefault(cell["row"], {})[cell["column"]] = (
                    f"{cell['code']} in {cell['seconds']:.1f} s" if report.passed else report.outcome.upper()
                )
    if results:
        terminalreporter.section("faults: exit code of the job, and seconds until every host ended")
        terminalreporter.write_line(table(results))
