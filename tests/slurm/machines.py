"""The controller and the nodes as kernel namespaces of one machine, joined by a bridge and reached from outside.

The first process of the cluster's process namespace reads the tests' end of a pipe. When that is closed, by ``close`` or
because the tests were killed, the kernel ends every process, mount, interface and namespace of the cluster. A node has a
process namespace of its own below: its processes see only each other, and end with its first one. The first processes
ignore SIGCHLD, so that the kernel reaps the orphans of Slurm's daemons.

This machine is the cluster's login node: an interface of its own on the bridge's network (no forwarding, which a Docker
daemon's policy would refuse). Its file system is the shared one. A node's own are ``/tmp``, in which the ``shared``
folders are seen, ``/dev/shm``, ``/run`` and the number of its boot, by which programs know a machine again.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fakes.processes import until
from faults import processes
from slurm.configuration import CONTROLLER, GPUS

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHECKOUT = Path(__file__).parents[2]
#: Some programs stand where a user's PATH does not lead.
ENVIRONMENT = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
_KINDS = ("--net", "--mount", "--uts", "--pid")
_UNSHARE = ("unshare", *_KINDS, "--fork", "--kill-child", "--mount-proc")
_MARK = "SCRIPTMODE_SLURM_NODE"
#: Interfaces may have 15 characters.
_INTERFACE = "slurm{}"

#: Arguments: the cluster's folder, the network's first three numbers, the nodes, their GPUs, their script, the shared
#: folders.
_CLUSTER_SCRIPT = """
set -e
folder=$1 network=$2 nodes=$3 gpus=$4 node_script=$5
shift 5
hostname controller
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=755 tmpfs "$folder/own"
mkdir -p /run/machine "$folder/own/state"
mount --rbind /tmp /run/machine
mkdir -p /etc/slurm
mount --bind "$folder" /etc/slurm
echo "127.0.0.1 localhost" >"$folder/hosts"
echo "$network.254 controller" >>"$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
ip link set lo up
ip link add name switch type bridge
ip address add "$network.254/24" dev switch
ip link set switch up
number=0
for node in $nodes; do
    number=$((number + 1))
    echo "$network.$number $node" >>"$folder/hosts"
    ip netns add $node
    ip link add name $node type veth peer name eth0 netns $node
    ip link set $node master switch up
    ip -n $node link set lo up
    ip -n $node address add "$network.$number/24" dev eth0
    ip -n $node link set eth0 up
    SCRIPTMODE_SLURM_NODE=$node nsenter --net=/run/netns/$node unshare --mount --uts --pid --fork --kill-child --mount-proc \
        sh -c "$node_script" $node "$folder" "$gpus" "$@" &
done
echo up
exec env --ignore-signal=CHLD cat >/dev/null
"""

_NODE_SCRIPT = """
set -e
folder=$1 gpus=$2
shift 2
hostname "$0"
mkdir -p "$folder/own/$0" "$folder/devices/$0"
number=0
while [ $number -lt "$gpus" ]; do
    mknod -m 666 "$folder/devices/$0/gpu$number" c 1 3
    number=$((number + 1))
done
cat /proc/sys/kernel/random/uuid >"$folder/own/$0/boot_id"
mount --bind "$folder/own/$0/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
for path in "$folder" "$@"; do
    case "$path" in /tmp/*) mkdir -p "$path"; mount --rbind "/run/machine${path#/tmp}" "$path" ;; esac
done
mount -t tmpfs tmpfs /run
exec env --ignore-signal=CHLD sleep infinity
"""


class Machines:
    """The namespaces of one cluster. ``holders`` maps the controller and each node to its first process."""

    def __init__(self, folder: Path, nodes: Sequence[str], *shared: str | os.PathLike[str]) -> None:
        self._lease, self.number = _lease()
        self.network = f"10.84.{self.number}"
        self._folder, self._nodes = folder, nodes
        self._process = subprocess.Popen(
            [
                *(*_UNSHARE, "sh", "-c", _CLUSTER_SCRIPT, "cluster"),
                *(str(folder), self.network, " ".join(nodes), str(GPUS), _NODE_SCRIPT),
                *_outermost(folder, *shared),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        try:
            assert self._process.stdout.readline() == b"up\n", "the cluster's namespaces could not be made"
            (first,) = processes.children(self._process.pid)
            self.holders = {CONTROLLER: first}
            self.holders.update(until(lambda: self._find_nodes(first)))
            self._connect(first)
        except BaseException:
            self.close()
            raise

    def enter(self, machine: str) -> list[str]:
        """Return the words before a command that run it on the controller or a node."""
        return ["nsenter", f"--target={self.holders[machine]}", *_KINDS, "--"]

    def processes(self, machine: str) -> list[int]:
        """Return the identifiers, as this machine counts, of all processes of a node or the controller."""
        namespace = processes.namespace(self.holders[machine])
        return [pid for pid in processes.running() if processes.namespace(pid) == namespace]

    def root(self, machine: str) -> str:
        """Return the path at which this machine sees the root folder of a node or the controller."""
        return f"/proc/{self.holders[machine]}/root"

    def link(self, node: str, *, up: bool) -> None:
        """Connect or cut a node's network: nothing goes through, and no process is notified."""
        self._ip(CONTROLLER, "link", "set", node, "up" if up else "down")

    def close(self) -> None:
        """End every process; the kernel takes the rest back."""
        self._process.stdin.close()
        try:
            self._process.wait(600)
        except subprocess.TimeoutExpired:
            self._process.kill()  # and the first process with it
            self._process.wait(600)
        self._process.stdout.close()
        self._lease.close()

    def _connect(self, first: int) -> None:
        """Make this machine the login node: address 250 of the network."""
        name = _INTERFACE.format(self.number)

        def added() -> bool:
            # The kernel may still be removing that of an ended cluster.
            words = ("link", "add", name, "type", "veth", "peer", "name", "login", "netns", str(first))
            return subprocess.run(["ip", *words], check=False, capture_output=True, env=ENVIRONMENT).returncode == 0

        until(added)
        self._ip(CONTROLLER, "link", "set", "login", "master", "switch", "up")
        self._ip(None, "address", "add", f"{self.network}.250/24", "dev", name)
        self._ip(None, "link", "set", name, "up")

    def _ip(self, machine: str | None, *words: str) -> None:
        before = self.enter(machine) if machine else []
        subprocess.run([*before, "ip", *words], check=True, env=ENVIRONMENT)

    def _find_nodes(self, first: int) -> dict[str, int] | None:
        found = {}
        below = processes.children(first)
        while below:
            pid = below.pop()
            below += processes.children(pid)
            name = processes.variables(pid).get(_MARK)
            if name and processes.words(pid)[:1] == ["sleep"]:
                found[name] = pid
        return found if sorted(found) == sorted(self._nodes) else None


def _lease() -> tuple[socket.socket, int]:
    """Return a number that no other cluster of this machine has while the socket is open, in this process."""
    for number in range(250):
        lease = socket.socket(socket.AF_UNIX)
        try:
            lease.bind(f"\0scriptmode-slurm-{number}")
        except OSError:
            lease.close()
            continue
        return lease, number
    raise AssertionError("250 Slurm clusters run on this machine")


def _outermost(*folders: str | os.PathLike[str]) -> list[str]:
    """Return the folders that lie in none of the others, and those that this checkout and the interpreter need."""
    seen = sorted({str(Path(folder).resolve()) for folder in (sys.prefix, sys.base_prefix, _CHECKOUT, *folders)})
    return [path for path in seen if not any(path.startswith(f"{above}/") for above in seen)]
