"""The guide's reverse proxies before `scriptmode serve`: AWS's clients over TLS, by the name of the proxy."""

import re
import shlex
import shutil
import socket
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from fakes.host_folders import free_ports
from fakes.processes import until
from serve.conftest import serving

from scriptmode_serve._http.access_keys import AccessKeys

GUIDE = (Path(__file__).parents[2] / "sdk/docs/guides/serve.md").read_text()
NAME = "ml.example.com"
PATH = "/usr/sbin:/usr/bin"
#: How the guide's block begins, the rest of a configuration, and the command.
PROXIES = {
    "nginx": ("server", "events {{}}\nhttp {{\n{block}\n}}\n", "-p {folder} -e stderr -g 'daemon off; pid nginx.pid;' -c {file}"),
    "caddy": (NAME, "{{\nadmin off\nauto_https disable_redirects\n}}\n{block}\n", "run --adapter caddyfile --config {file}"),
}  # fmt: skip

pytestmark = [pytest.mark.long, pytest.mark.slow]


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True


@contextmanager
def proxying(program, folder, port, target):
    """Run a proxy with the guide's block of its configuration, at another port and with a certificate in ``folder``."""
    start, around, arguments = PROXIES[program]
    block = re.search(rf"```text\n({start} {{.*?\n}})\n```", GUIDE, re.DOTALL)[1]
    changes = {"/etc/ssl": folder, " 443": f" {port}", f"{NAME} {{": f"{NAME}:{port} {{", "127.0.0.1:4580": target}
    for old, new in changes.items():
        block = block.replace(old, str(new))
    file = folder / "proxy.conf"
    file.write_text(around.format(block=block))
    command = shlex.split(f"{program} {arguments.format(folder=folder, file=file)}")
    with subprocess.Popen(command, cwd=folder, env={"PATH": PATH, "HOME": str(folder)}) as process:
        try:
            until(lambda: answers(port))
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize("program", PROXIES)
def test_clients_use_the_server_through_a_proxy_that_speaks_tls(tmp_path, monkeypatch, program):
    if not shutil.which(program, path=PATH):
        pytest.skip(f"{program} is not installed")
    certificate = tmp_path / f"{NAME}.pem"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / f"{NAME}.key")
    name = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    subprocess.run(("openssl", "req", "-x509", *key, *name, "-out", certificate), check=True, stderr=subprocess.DEVNULL)
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *more, **rest: resolve("127.0.0.1" if host == NAME else host, *more, **rest)
    )
    with serving(tmp_path) as api:
        (port,) = free_ports(1)
        with proxying(program, tmp_path, port, api.server.url.removeprefix("http://")):
            settings = {"endpoint_url": f"https://{NAME}:{port}", "verify": str(certificate)}
            # Without a key the server knows no name but its own.
            with pytest.raises(ClientError, match="AccessDenied"):
                client("sagemaker", ("any", "any"), settings).list_training_jobs()
            made = AccessKeys(tmp_path / "data").create()
            own = made.identifier, made.secret
            assert client("sagemaker", own, settings).list_training_jobs()["TrainingJobSummaries"] == []
            s3 = client("s3", own, settings)
            s3.create_bucket(Bucket="bucket")
            s3.put_object(Bucket="bucket", Key="a b/é%", Body=bytes(20_000_000))
            assert s3.get_object(Bucket="bucket", Key="a b/é%")["Body"].read() == bytes(20_000_000)
            with pytest.raises(ClientError, match="InvalidSignature|SignatureDoesNotMatch|UnrecognizedClient"):
                client("sagemaker", (made.identifier, "other"), settings).list_training_jobs()


def client(service, key, settings):
    import boto3

    return boto3.Session(*key, region_name="us-east-1").client(service, **settings)
