"""Who may use SeaweedFS: processes that can read a directory of the data directory, which its user alone can.

It listens at loopback addresses, which every user of the machine and every page in a browser reaches. Each of its ports
but that of S3 demands a certificate that is made here (mutual TLS), and S3 a signature with a key that is made here.
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path

from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._system.certificates import create_certificate
from scriptmode_serve._http.access_keys import AccessKey, random_key

#: The parts that accept connections by gRPC and by HTTP, and those that connect to others.
_GRPC, _HTTPS = ("master", "volume", "filer", "s3", "client"), ("master", "volume", "filer", "client")


class StoreAccess:
    """The key and the certificate of one directory, created with the first use; raises ``OSError``."""

    def __init__(self, folder: Path) -> None:
        self._certificate, self._private_key = folder / "certificate.pem", folder / "key.pem"
        self.configuration = folder / "s3.json"
        if not self._private_key.exists():
            certificate, key = create_certificate("the server", "serve")
            replace_file(self._certificate, certificate)
            # Last: its presence means that both are complete.
            replace_file(self._private_key, key)
        self.key = self._read_key() or self._create_key()

    def environment(self) -> dict[str, str]:
        """Return the whole environment for SeaweedFS: credentials of the caller's would change who may use S3.

        A setting of its security.toml is a variable, in capitals and with ``_`` in place of dots.
        """
        certificate, key = str(self._certificate), str(self._private_key)
        settings = {"grpc.ca": certificate, "https.client.enabled": "true", "cors.allowed_origins.values": "none"}
        for section in (*(f"grpc.{part}" for part in _GRPC), *(f"https.{part}" for part in _HTTPS)):
            settings |= {f"{section}.cert": certificate, f"{section}.key": key}
        settings["filer.options.max_file_name_length"] = "1024"  # A part of a key may be all of it.
        settings |= {f"https.{part}.ca": certificate for part in _HTTPS}
        variables = {f"WEED_{name.upper().replace('.', '_')}": value for name, value in settings.items()}
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.configuration.parent), **variables}

    def context(self) -> ssl.SSLContext:
        """Return the settings of a connection to one of the ports with mutual TLS."""
        context = ssl.create_default_context(cafile=str(self._certificate))
        context.load_cert_chain(self._certificate, self._private_key)
        return context

    def _read_key(self) -> AccessKey | None:
        try:
            content = regular_files.read_json(self.configuration)
            credentials = content["identities"][0]["credentials"][0]
            return AccessKey(str(credentials["accessKey"]), str(credentials["secretKey"]))
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            return None

    def _create_key(self) -> AccessKey:
        key = random_key()
        credentials = [{"accessKey": key.identifier, "secretKey": key.secret}]
        identity = {"name": "scriptmode", "credentials": credentials, "actions": ["Admin"]}
        replace_file(self.configuration, json.dumps({"identities": [identity]}).encode())
        return key
