"""Which OpenSSH this host has. Looks at files only; starts nothing."""

from __future__ import annotations

import os
from typing import NamedTuple

_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")


class Ssh(NamedTuple):
    """OpenSSH's programs on this host."""

    client: str
    server: str
    keygen: str


def find(search_path: str) -> Ssh | None:
    """Find them on ``search_path`` (as ``PATH`` is written) and where administrators' programs stand; all or none."""
    folders = [folder for folder in search_path.split(os.pathsep) if os.path.isabs(folder)]
    found = []
    for name in ("ssh", "sshd", "ssh-keygen"):
        paths = (os.path.join(folder, name) for folder in (*folders, *_SYSTEM_FOLDERS))
        found.append(next((path for path in paths if os.access(path, os.X_OK)), ""))
    return Ssh(*found) if all(found) else None
