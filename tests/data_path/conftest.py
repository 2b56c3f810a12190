import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fakes.views import Views, WatchedObjects


@pytest.fixture
def views():
    """Begin mounts that are gone when the test is over."""
    begun = Views()
    yield begun
    begun.close()


@pytest.fixture
def objects(tmp_path):
    """Make a store of contents by path."""
    control = tmp_path / "control"
    control.mkdir()
    return lambda contents: WatchedObjects(contents, control)


@pytest.fixture
def certificate(tmp_path):
    """The file of a certificate for 127.0.0.1 that no one else trusts, and the file of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.timezone.utc)
    day = dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key").write_bytes(private)
    (tmp_path / "certificate").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return tmp_path / "certificate", tmp_path / "key"
