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


@pytest.fixture
def jobs_of_the_command(jobs, tmp_path, monkeypatch):
    """The command finds the jobs of ``jobs``, and they are deleted afterwards, whatever they do."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    monkeypatch.chdir(tmp_path)
    yield
    for name in [each["TrainingJobName"] for each in jobs.platform.list()]:
        jobs.platform.delete(name)


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory):
    """A user's current directory, with a data directory in it and without credentials of AWS."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_CONFIG_FILE", str(folder / "no config"))
        patch.setenv("SCRIPTMODE_DATA_DIR", str(folder / "data dir"))
        patch.chdir(folder)
        yield folder


@pytest.fixture
def here(jobs_of_the_command, tmp_path, monkeypatch):
    """An empty current directory; the jobs that the command starts in it are deleted afterwards."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
