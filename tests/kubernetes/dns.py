"""``python dns.py KUBECONFIG ADDRESS``: the cluster's DNS, of services and of pods with a host name, as addresses (A).

As CoreDNS it knows what the API server told last while that is away.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SUFFIX = ["svc", "cluster", "test"]
_A, _ANY = 1, 255
_NO_ERROR, _SERVER_FAILURE, _NO_SUCH_NAME = 0, 2, 3
#: Of an answer in a resolver's cache, and of what is known here.
_SECONDS = 1


class Api:
    """Services and endpoints by namespace and name, a second old at most."""

    def __init__(self, kubeconfig: Path) -> None:
        known = dict(re.findall(r"^\s*([\w-]+): (\S+)$", kubeconfig.read_text(), re.MULTILINE))
        self._server = known["server"]
        self._context = ssl.create_default_context(
            cadata=base64.b64decode(known["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as both:
            both.write(base64.b64decode(known["client-certificate-data"]))
            both.write(base64.b64decode(known["client-key-data"]))
            both.flush()
            self._context.load_cert_chain(both.name)
        self._read = -1e9
        self.services: dict = {}
        self.endpoints: dict = {}

    def refresh(self) -> None:
        """Ask the API server, unless that was just done; keep what is known if it does not answer."""
        if time.monotonic() - self._read < _SECONDS:
            return
        try:
            self.services, self.endpoints = self._list("services"), self._list("endpoints")
        except OSError as error:
            print(error, flush=True)
        self._read = time.monotonic()

    def _list(self, kind: str) -> dict:
        address = f"{self._server}/api/v1/{kind}"
        with urllib.request.urlopen(address, context=self._context, timeout=5) as answer:
            items = json.load(answer)["items"]
        return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a service or of a pod behind it; none for an unknown name."""
        labels = name.lower().split(".")
        if labels[-3:] != SUFFIX or len(labels) not in (5, 6):
            return []
        *host, name, namespace = labels[:-3]
        service = self.services.get((namespace, name))
        if not service:
            return []
        address = service["spec"].get("clusterIP")
        if address != "None" and not host:
            return [address] if address else []
        subsets = self.endpoints.get((namespace, name), {}).get("subsets") or []
        ready = [address for subset in subsets for address in subset.get("addresses") or []]
        return sorted({found["ip"] for found in ready if not host or found.get("hostname") == host[0]})


def answer(query: bytes, addresses) -> bytes:
    """Return the answer to a query of one name; ``addresses`` returns those of a name."""
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1 : end + 1 + query[end]].decode("ascii", "replace"))
        end += 1 + query[end]
    question, kind = query[12 : end + 5], int.from_bytes(query[end + 1 : end + 3], "big")
    found = addresses(".".join(labels))
    code = _NO_ERROR if found else _NO_SUCH_NAME
    records = found if kind in (_A, _ANY) else []
    flags = 0x8480 | (query[2] & 1) << 8 | code
    head = query[:2] + b"".join(number.to_bytes(2, "big") for number in (flags, 1, len(records), 0, 0))
    record = b"\xc0\x0c\0\x01\0\x01" + _SECONDS.to_bytes(4, "big") + b"\0\x04"
    return head + question + b"".join(record + socket.inet_aton(address) for address in records)


def main(kubeconfig: str, address: str) -> None:
    """Answer until the process ends."""
    api = Api(Path(kubeconfig))

    def addresses(name: str) -> list[str]:
        api.refresh()
        return api.addresses(name)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        server.settimeout(_SECONDS)
        while True:
            try:
                query, client = server.recvfrom(4096)
            except OSError:  # nothing came in time
                api.refresh()
                continue
            server.sendto(answer(query, addresses), client)


if __name__ == "__main__":
    main(*sys.argv[1:])
