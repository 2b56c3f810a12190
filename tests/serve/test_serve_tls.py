"""`scriptmode serve` with a certificate: real clients over TLS, and certificates that cannot be used."""

import os
import socket
import subprocess
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, SSLError
from serve.conftest import serving

from scriptmode import PlatformError, SpecError
from scriptmode.cli.commands.serve import serve
from scriptmode.serve.access_keys import AccessKeys
from scriptmode.serve.tls import TlsRelay, load_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """PEM files of a certificate of 127.0.0.1 and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scriptmode")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    return files


@pytest.mark.slow
def test_clients_use_tls_with_signatures(tmp_path, certificate):
    key = AccessKeys(tmp_path / "data").create()
    keys = {"aws_access_key_id": key.identifier, "aws_secret_access_key": key.secret}
    options = ("--s3", "memory", "--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1]))
    with serving(tmp_path, *options, "--rate", "1000") as api:
        assert api.server.url.startswith("https://127.0.0.1:")
        trusting = {**keys, "verify": str(certificate[0])}
        assert api.client("sagemaker", **trusting).list_training_jobs()["TrainingJobSummaries"] == []
        s3 = api.client("s3", config=Config(signature_version="s3v4"), **trusting)
        s3.create_bucket(Bucket="mine")
        content = b"0123456789abcdef" * 200_000
        s3.put_object(Bucket="mine", Key="data", Body=content)
        assert s3.get_object(Bucket="mine", Key="data")["Body"].read() == content
        with pytest.raises(ClientError, match="UnrecognizedClient"):
            api.client("sagemaker", verify=str(certificate[0])).list_training_jobs()
        with pytest.raises(SSLError):
            api.client("sagemaker", **keys).list_training_jobs()
        # A client that sends nothing delays no other.
        address = ("127.0.0.1", int(api.server.url.rpartition(":")[2]))
        with socket.create_connection(address):
            assert api.client("sagemaker", **trusting).list_training_jobs()["TrainingJobSummaries"] == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--tls-certificate", "{certificate}"], "--tls-certificate is {certificate}, which cannot be used"),
        (["--tls-certificate", "/nowhere.pem"], "No such file"),
        (["--tls-key", "{key}"], "--tls-key is '{key}', but there is no certificate"),
        (["--tls-certificate", "{key}", "--tls-key", "{certificate}"], "PEM files"),
    ],
    ids=["no key", "no file", "a key alone", "exchanged"],
)
def test_a_certificate_that_cannot_be_used_is_refused(certificate, options, text):
    files = {"certificate": certificate[0], "key": certificate[1]}
    with pytest.raises(SpecError, match=text.format(**files)):
        serve.main([each.format(**files) for each in options], standalone_mode=False)


def test_a_taken_port_is_that_of_a_process(certificate):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlatformError, match=f"at 127.0.0.1:{port}: process {os.getpid()} listens there .*:0$"):
            TlsRelay(load_certificate(*certificate), "127.0.0.1", port, ("127.0.0.1", 1))


def test_an_encrypted_key_is_refused_without_a_question(tmp_path, certificate):
    encrypted = tmp_path / "encrypted.pem"
    command = ("openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", certificate[1], "-out", encrypted)
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(SpecError, match="without a password"):
        serve.main(["--tls-certificate", str(certificate[0]), "--tls-key", str(encrypted)], standalone_mode=False)
