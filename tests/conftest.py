"""Real things the tests stand on: a local platform of one's own, an S3 server, hostile names."""

import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from fakes import seaweedfs
from fakes.promptness import TooLateError
from hung_tests import HungTests
from hypothesis import HealthCheck, settings
from run_report import RunReport
from temporary_files import TemporaryFiles
from tiers import TIERS, select

HOSTILE_NAMES = {
    "spaces": " two  spaces ", "quotes": 'it\'s "quoted" `here` $HOME', "unicode": "données-图-😀",
    "newline": "first\nsecond", "dashes": "--help", "command": "$(touch x)", "percent": "100%20 sure",
    "backslash": "back\\slash",
}  # fmt: skip

# How long an example takes says more about the machine than about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Children start hundreds of interpreters: importing TensorFlow takes 3 CPU seconds with its bytecode and 8 without, and
# installers such as uv compile nothing. Images for containers often set this variable.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# With it pytest's last lines have whole logs, among which the names of failed tests are not seen.
os.environ.pop("CI", None)

# nbformat imports it where it is installed: 4 seconds of each process, for a format that no notebook has.
sys.modules["rfc3987_syntax"] = None
# boto3 parses a megabyte of models for each session, of which tests make thousands.
_parse_model = cache(JSONFileLoader().load_file)
JSONFileLoader.load_file = lambda _, path: _parse_model(path)

# On a machine of a cloud the metadata service would answer with the machine's own role.
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

#: Tests that one process has: those that train longest, and those that share what takes long to make.
TOGETHER = {
    "tests/containers/": "trainings",
    "tests/notebooks/": "trainings",
    "tests/contract/toolkit/": "toolkit",
    "tests/sagemaker_sdk/": "requests of v2",
    "tests/faults/": "faults",
    "tests/outside/": "outside",
}


def pytest_configure(config):
    """Take signals as a terminal would send them: a shell that runs the tests in the background ignores these."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    config.pluginmanager.register(RunReport(config))
    config.pluginmanager.register(HungTests(config))
    # The process has a thread that waits for a hung test; from Python 3.12 on a fork beside one is warned of.
    config.addinivalue_line("filterwarnings", "ignore:This process .* is multi-threaded:DeprecationWarning")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(TemporaryFiles(config))


def pytest_addoption(parser):
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="all",
        help="Which tests to run: test (what needs neither root, Docker nor Slurm and is not long), rest, all (without the option), thorough.",
    )
    parser.addoption(
        "--distributions",
        metavar="DIRECTORY",
        help="Test the files of a release, which .ci/release made, instead of building distributions (tests/outside).",
    )
    parser.addoption("--timings", metavar="FILE", help="Write each test's seconds and CPU seconds as a JSON line.")


def pytest_collection_modifyitems(config, items):
    """Leave out the tests that the run's tier does not have."""
    select(config, items)


def pytest_itemcollected(item):
    """Try three times what promises seconds, where it fails for being late alone; never amid a debugger."""
    if item.get_closest_marker("prompt") and not item.config.option.usepdb:
        item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1, only_rerun=[TooLateError.__name__]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one process have all tests of a file, or of folders that would be in each other's way or make things twice."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return next((group for folder, group in TOGETHER.items() if file.startswith(folder)), file)

    return Together(config, log)


@pytest.fixture(params=HOSTILE_NAMES.values(), ids=HOSTILE_NAMES.keys())
def hostile_name(request):
    """A name that a path may have and careless code breaks on."""
    return request.param


@pytest.fixture
def code(tmp_path):
    """A source folder with a script."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    return str(folder)


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory):
    """A folder on a file system in memory, for tests that write and remove thousands of small files; else any."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 1 << 30:
        yield tmp_path_factory.mktemp("folder")
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="scriptmode-") as folder:
        yield Path(folder)


@pytest.fixture
def jobs(tmp_path, closed_after):
    """Jobs of a local platform with a data directory of its own; nothing of them is left afterwards."""
    from fakes.local_jobs import LocalJobs

    return closed_after(LocalJobs(tmp_path, stop_grace=20.0))


@pytest.fixture
def jobs_in_memory(memory_folder, closed_after):
    """The same on a file system in memory, for jobs that write or remove thousands of folders."""
    from fakes.local_jobs import LocalJobs

    return closed_after(LocalJobs(tempfile.mkdtemp(dir=memory_folder), stop_grace=20.0))


@pytest.fixture
def closed_after():
    """A function that returns what it is given, which is closed after the test."""
    with ExitStack() as stack:
        yield lambda resource: stack.enter_context(closing(resource))


@pytest.fixture
def data_dir(monkeypatch, tmp_path):
    """The data directory of this test's jobs, which does not exist yet."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def store(tmp_path):
    """A store of jobs of another data directory."""
    from scriptmode_local._store.job_store import JobStore

    return JobStore(tmp_path / "data")


@pytest.fixture
def own_directory(data_dir, monkeypatch, tmp_path):
    """A current directory of the test's own, below which the data directory will be."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    """An environment in which boto3 finds no credentials at all."""
    for name in list(os.environ):
        if name.startswith("AWS_") and name != "AWS_CA_BUNDLE":
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no credentials"))


@pytest.fixture
def account_settings(monkeypatch, no_credentials):
    """Credentials and a Region in boto3's own settings."""
    for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.fixture
def no_settings(monkeypatch, tmp_path, no_credentials):
    """No settings of the person who runs the tests: neither AWS's nor SageMaker's."""
    for which in ("ADMIN", "USER"):
        empty = tmp_path / which
        empty.write_text("")
        monkeypatch.setenv(f"SAGEMAKER_{which}_CONFIG_OVERRIDE", str(empty))


@dataclass(frozen=True)
class S3Server:
    """A running S3 server. ``environment`` is what makes boto3 use it."""

    endpoint: str
    environment: dict[str, str]
    client: Any = field(repr=False)

    def bucket(self, name, objects):
        """Make a bucket that holds ``objects``, key to bytes."""
        self.client.create_bucket(Bucket=name)
        for key, content in objects.items():
            self.client.put_object(Bucket=name, Key=key, Body=content)
        return name

    def use(self, monkeypatch):
        """Have boto3's standard settings name this server."""
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """SeaweedFS on loopback: an S3 server that checks signatures and permissions."""
    with seaweedfs.running(tmp_path_factory.mktemp("s3")) as (endpoint, client):
        environment = {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": seaweedfs.ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": seaweedfs.SECRET_KEY, "AWS_DEFAULT_REGION": "us-east-1",
        }  # fmt: skip
        yield S3Server(endpoint, environment, client)


@pytest.fixture
def s3(s3_server, monkeypatch, no_credentials):
    """The S3 server, named by boto3's standard settings."""
    s3_server.use(monkeypatch)
    return s3_server


@pytest.fixture
def silent_s3(monkeypatch, no_credentials):
    """An S3 endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", seaweedfs.ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seaweedfs.SECRET_KEY)
        yield silent
