import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fakes.faulty_s3 import FaultyS3
from fakes.views import Views, WatchedObjects


@pytest.fixture
def server(request, monkeypatch, no_credentials):
    """An S3 server with the ``OBJECTS`` of the test's module, if it has any, whose requests fail as a test says."""
    with FaultyS3(dict(getattr(request.module, "OBJECTS", ()))) as running:
        running.use(monkeypatch)
        yield running


@pytest.fixture
def views(closed_after):
    """Begin mounts that are gone when the test is over."""
    return closed_after(Views())


@pytest.fixture
def objects(tmp_path):
    """Make a store of contents by path."""
    control = tmp_path / "control"
    control.mkdir()
    return lambda contents: WatchedObjects(contents, control)


@pytest.fixture
def certificate(tmp_path):
    """The file of a certificate for 127.0.0.1 with that of its authority, which no one else trusts, and of its key."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = signed("authority", authority_key, "authority", authority_key, is_authority=True)
    leaf = signed("127.0.0.1", key, "authority", authority_key, is_authority=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key").write_bytes(private)
    pem = serialization.Encoding.PEM
    (tmp_path / "certificate").write_bytes(leaf.public_bytes(pem) + authority.public_bytes(pem))
    return tmp_path / "certificate", tmp_path / "key"


def signed(subject, key, issuer, issuer_key, *, is_authority):
    """Return a certificate of a key; rustls accepts none of an authority from a server."""
    subject, issuer = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in (subject, issuer))
    now, day = dt.datetime.now(dt.timezone.utc), dt.timedelta(days=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
