"""Certificates for TLS, made by the package cryptography: the standard library uses them, and cannot make them."""

from __future__ import annotations

import datetime as dt
import ipaddress

from scriptmode._core.machine.installation import install_command, missing_package


def create_certificate(user: str, extra: str) -> tuple[bytes, bytes]:
    """Return a certificate for 127.0.0.1 that is its own authority, and its private key, both as PEM.

    Raises `MissingPackageError`, which says that ``user`` needs the ``extra``, where cryptography is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ModuleNotFoundError as error:
        raise missing_package(user, "cryptography", command=install_command(extra)) from error

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "scriptmode")])
    now = dt.datetime.now(dt.timezone.utc)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = (
        builder.not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    unencrypted = serialization.NoEncryption()
    return certificate.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted)
