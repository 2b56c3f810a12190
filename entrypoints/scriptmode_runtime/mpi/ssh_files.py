"""What OpenSSH's client and server read for one job. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scriptmode_runtime.plan import File

if TYPE_CHECKING:
    from scriptmode_runtime.cluster import Host

#: The first host's private key, every other host's, and whom each of them trusts, in `TrainingEnvironment.scratch`.
LOGIN_KEY, HOST_KEY = "login_key", "host_key"
KNOWN_HOSTS, AUTHORIZED_KEYS = "known_hosts", "authorized_keys"


def client_config(folder: str, hosts: tuple[Host, ...]) -> File:
    """Give the client's settings: only the job's keys, only hosts it knows, nothing asked."""
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
    """Give the server's settings: the job's address and key, and one ``command`` for whoever logs in."""
    settings = {
        "ListenAddress": this.address,
        "Port": this.ports["ssh"],
        "HostKey": os.path.join(folder, HOST_KEY),
        "AuthorizedKeysFile": os.path.join(folder, AUTHORIZED_KEYS),
        # /tmp, above the folder, is everyone's; the folder itself is this user's alone.
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
        # Whoever looks whether it listens is an ERROR.
        "LogLevel": "FATAL",
        "ForceCommand": command,
    }
    return _file(os.path.join(folder, "sshd_config"), settings)


def _file(path: str, settings: dict[str, object]) -> File:
    return File(path, "".join(f"{name} {value}\n" for name, value in settings.items()))
