import pytest
from contract.toolkit import CASES
from contract.toolkit.asking import answers, toolkit
from contract.toolkit.running import run_all


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Records of the toolkit's ``train`` and of ours for every case, by its id."""
    return run_all(CASES, tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def answered(tmp_path_factory):
    """The toolkit's answers and ours for every case of several hosts, by its id."""
    with toolkit(tmp_path_factory.mktemp("answered")) as process:
        return answers(process)


@pytest.fixture(scope="session")
def toolkit_process(tmp_path_factory):
    """The toolkit in a process that answers questions."""
    with toolkit(tmp_path_factory.mktemp("asked")) as process:
        yield process
