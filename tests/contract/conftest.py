import pytest
from contract import v2_requests

FILES = ("code/train.py", "code/train.sh", "code/inner/other.py", "library/part.py", "single.py")


@pytest.fixture(scope="session")
def asked(tmp_path_factory):
    """A folder with sources, and the requests that v2 and scriptmode make of it for every case of the matrix.

    v2 is installed into an environment of its own at the first run, which takes about a minute.
    """
    folder = tmp_path_factory.mktemp("sources")
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    return folder, v2_requests.ask(folder)
