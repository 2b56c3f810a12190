"""The guide's reverse proxies before `scriptmode serve`: AWS's clients over TLS, by the name of the proxy."""

import re
import socket
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from fakes.processes import until
from serve.conftest import serving

from scriptmode.serve.access_keys import AccessKeys

GUIDE = (Path(__file__).parents[2] / "sdk/docs/guides/serve.md").read_text()
NAME = "ml.example.com"
COMMANDS = {
    "nginx": ("nginx", "-p", "{folder}", "-e", "stderr", "-g", "daemon off; pid nginx.pid;", "-c", "{file}"),
    "caddy": ("caddy", "run", "--adapter", "caddyfile", "--config", "{file}"),
}
AROUND = {
    "nginx": "events {{}}\nhttp {{\naccess_log off;\n{block}\n}}\n",
    "caddy": "{{\nadmin off\nauto_https disable_redirects\n}}\n{block}\n",
}

pytestmark = [pytest.mark.long, pytest.mark.slow]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True


@contextmanager
def proxying(program, folder, port, target):
    """Run a proxy with the guide's block of its configuration, at another port and with a certificate in ``folder``."""
    block = re.search(rf"```\w+\n((?:server|{re.escape(NAME)}) {{.*?\n}})\n```", GUIDE[GUIDE.lower().index(f"\n{program}:") :] if
                      program == "caddy" else GUIDE, re.DOTALL)[1]  # fmt: skip
    for old, new in (
        ("/etc/ssl", folder),
        ("listen 443", f"listen {port}"),
        (f"{NAME} {{", f"{NAME}:{port} {{"),
        ("127.0.0.1:4580", target),
    ):
        block = block.replace(old, str(new))
    file = folder / "proxy.conf"
    file.write_text(AROUND[program].format(block=block))
    command = [part.format(folder=folder, file=file) for part in COMMANDS[program]]
    with subprocess.Popen(command, cwd=folder, env={"PATH": "/usr/sbin:/usr/bin", "HOME": str(folder)}) as process:
        try:
            until(lambda: answers(port))
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize("program", COMMANDS)
def test_clients_use_the_server_through_a_proxy_that_speaks_tls(tmp_path, monkeypatch, program):
    certificate = tmp_path / f"{NAME}.pem"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / f"{NAME}.key")
    name = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    subprocess.run(("openssl", "req", "-x509", *key, *name, "-out", certificate), check=True, stderr=subprocess.DEVNULL)
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *more, **rest: resolve("127.0.0.1" if host == NAME else host, *more, **rest)
    )
    with serving(tmp_path) as api:
        port = free_port()
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
