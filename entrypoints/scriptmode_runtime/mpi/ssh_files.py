"""Configuration files of OpenSSH's client and server for one job. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scriptmode_runtime.plan import File

if TYPE_CHECKING:
    from scriptmode_runtime.cluster import Host

#: Private keys of the first host and of the others, and the public keys that each trusts, in the scratch directory.
LOGIN_KEY, HOST_KEY = "login_key", "host_key"
KNOWN_HOSTS, AUTHORIZED_KEYS = "known_hosts", "authorized_keys"


def client_config(folder: str, hosts: tuple[Host, ...]) -> File:
    """Return the client's configuration: only the job's key, only known hosts, no prompts."""
    settings = {
        "Port": hosts[0].ports["ssh"],
        "IdentityFile": os.path.join(folder, LOGIN_KEY),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": os.path.join(folder, KNOWN_HOSTS),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "HashKnownHosts": "no",
        "PreferredAuthentications": "publickey",
        "BatchMode": "yes",
        "ConnectTimeout": 30,
        "LogLevel": "ERROR",
    }
    return _file(os.path.join(folder, "ssh_config"), settings)


def server_config(folder: str, this: Host, command: str) -> File:
    """Return the server's configuration: the host's address and key, and one ``command`` for every login."""
    settings = {
        "ListenAddress": this.address,
        "Port": this.ports["ssh"],
        "HostKey": os.path.join(folder, HOST_KEY),
        "AuthorizedKeysFile": os.path.join(folder, AUTHORIZED_KEYS),
        # Every user may write to /tmp, above the directory; only this user may write to the directory itself.
        "StrictModes": "no",
        "AuthenticationMethods": "publickey",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "PermitTTY": "no",
        "PermitUserEnvironment": "no",
        "DisableForwarding": "yes",
        "UsePAM": "no",
        "UseDNS": "no",
        "PidFile": "none",
        # It logs an ERROR for each connection that only checks whether it listens.
        "LogLevel": "FATAL",
        "ForceCommand": command,
    }
    return _file(os.path.join(folder, "sshd_config"), settings)


def _file(path: str, settings: dict[str, object]) -> File:
    return File(path, "".join(f"{name} {value}\n" for name, value in settings.items()))
