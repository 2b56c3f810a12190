"""Keys for ssh between one job's hosts: created by each host for each job; only public keys are sent, over `peers`.

The first host creates the key of its logins, every other host its host key; the connections that carry the public
keys are authenticated and signed with the job's secret.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from scriptmode_runtime.contract import MPI_LAUNCHER_VARIABLE, SSH_LAUNCHER
from scriptmode_runtime.errors import ClusterError
from scriptmode_runtime.mpi.ssh_files import AUTHORIZED_KEYS, HOST_KEY, KNOWN_HOSTS, LOGIN_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_runtime.cluster import Cluster
    from scriptmode_runtime.host.programs import Ssh

_FACT = "ssh_key"
#: The directory that Debian's sshd requires when it is started by root.
_PRIVILEGE_SEPARATION = "/run/sshd"
_KEYGEN_SECONDS = 60.0


class Keys:
    """One host's own key, and the public keys of the hosts that it trusts. Raises `ClusterError`."""

    def __init__(self, ssh: Ssh, cluster: Cluster, folder: str) -> None:
        self._cluster = cluster
        self._folder = folder
        _check_user(cluster.this.name)
        path = os.path.join(folder, LOGIN_KEY if cluster.leads else HOST_KEY)
        try:
            public = _make(ssh, cluster.this.name, path)
            if os.geteuid() == 0 and not cluster.leads:
                os.makedirs(_PRIVILEGE_SEPARATION, mode=0o755, exist_ok=True)
        except (OSError, subprocess.SubprocessError) as error:
            remedy = "correct that" if os.access(ssh.keygen, os.X_OK) else "install OpenSSH"
            raise ClusterError(
                f"{cluster.this.name}: no ssh key can be created in {folder}: {_reason(error)}; {remedy}, or leave "
                f"{MPI_LAUNCHER_VARIABLE} out"
            ) from error
        #: The public key, which is sent to other hosts.
        self.facts = {_FACT: public}

    def trust(self, host: str, facts: Mapping[str, str]) -> None:
        """Add the public key of an authenticated host to the trusted ones."""
        peer = next(peer for peer in self._cluster.hosts if peer.name == host)
        key = " ".join(facts.get(_FACT, "").split()[:2])
        if self._cluster.leads:
            self._append(KNOWN_HOSTS, f"[{peer.address}]:{peer.ports['ssh']} {key}")
        else:
            self._append(AUTHORIZED_KEYS, f"restrict {key}")

    def _append(self, name: str, line: str) -> None:
        with open(os.path.join(self._folder, name), "a", encoding="ascii") as file:
            file.write(f"{line}\n")


def _check_user(host: str) -> None:
    """Raise `ClusterError` where OpenSSH's programs would refuse to start: they look up the user that they run as."""
    import pwd

    try:
        pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise ClusterError(
            f"{host}: {MPI_LAUNCHER_VARIABLE} is {SSH_LAUNCHER}, and ssh does not run as uid {os.getuid()}, of which "
            "/etc/passwd knows no user; leave that variable out, and hosts start mpirun's daemons without ssh, or add "
            "the user to the image (useradd --uid)"
        ) from error


def _make(ssh: Ssh, host: str, path: str) -> str:
    """Create a key pair and return its public key."""
    argv = (ssh.keygen, "-q", "-t", "ed25519", "-N", "", "-C", host, "-f", path)
    subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_KEYGEN_SECONDS)
    with open(f"{path}.pub", encoding="ascii") as file:
        return file.read().strip()


def _reason(error: Exception) -> str:
    """Return the last line of ssh-keygen's own output, else the system's error."""
    output: bytes = getattr(error, "stderr", None) or b""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else str(error)
