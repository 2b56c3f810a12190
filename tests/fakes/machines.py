"""The controller and the nodes as kernel namespaces of one machine, joined by a bridge and reached from outside.

The first process of the cluster's process namespace reads the tests' end of a pipe. When that is closed, by ``close`` or
because the tests were killed, the kernel ends every process, mount, interface and namespace of the cluster. A node has a
process namespace of its own below: its processes see only each other, and end with its first one. The first processes
ignore SIGCHLD, so that the kernel reaps the orphans of daemons.

This machine is the cluster's login node: an interface of its own on the bridge's network (no forwarding, which a Docker
daemon's policy would refuse). Its file system is the shared one. A node's own are ``/tmp``, in which the ``shared``
folders are seen, ``/dev/shm``, ``/run`` and the number of its boot, by which programs know a machine again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from fakes.processes import until
from faults import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHECKOUT = Path(__file__).parents[2]
#: Some programs stand where a user's PATH does not lead.
ENVIRONMENT = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
_KINDS = ("--net", "--mount", "--uts", "--pid")
_UNSHARE = ("unshare", *_KINDS, "--fork", "--kill-child", "--mount-proc")
CONTROLLER = "controller"
#: The kernel keeps as many characters of a program's name.
_COMM = 15
_MARK = "SCRIPTMODE_NODE"
#: Interfaces may have 15 characters.
_INTERFACE = "cluster{}"

#: Arguments: the cluster's folder, the network's first three numbers, the nodes, their script, what the engine's
#: controller needs, what its nodes need, what is done after the end, the shared folders.
_CLUSTER_SCRIPT = """
set -e
folder=$1 network=$2 nodes=$3 node_script=$4 on_controller=$5 on_node=$6 at_end=$7
shift 7
hostname controller
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=755 tmpfs "$folder/own"
mkdir -p /run/machine
mount --rbind /tmp /run/machine
echo "127.0.0.1 localhost" >"$folder/hosts"
echo "$network.254 controller" >>"$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
ip link set lo up
ip link add name switch type bridge
ip address add "$network.254/24" dev switch
ip link set switch up
eval "$on_controller"
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
    SCRIPTMODE_NODE=$node nsenter --net=/run/netns/$node unshare --mount --uts --pid --fork --kill-child --mount-proc \
        sh -c "$node_script" $node "$folder" "$on_node" "$@" &
done
echo up
trap '' CHLD
read -r line || true
trap - CHLD
kill -KILL -1
eval "$at_end"
"""

_NODE_SCRIPT = """
set -e
folder=$1 on_node=$2
shift 2
hostname "$0"
mkdir -p "$folder/own/$0"
cat /proc/sys/kernel/random/uuid >"$folder/own/$0/boot_id"
mount --bind "$folder/own/$0/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
for path in "$folder" "$@"; do
    case "$path" in /tmp/*) mkdir -p "$path"; mount --rbind "/run/machine${path#/tmp}" "$path" ;; esac
done
mount -t tmpfs tmpfs /run
eval "$on_node"
exec env --ignore-signal=CHLD sleep infinity
"""


class Machines:
    """The namespaces of one cluster. ``holders`` maps the controller and each node to its first process.

    Args:
        folder: Directory of the cluster, seen by all machines; ``own`` in it is in memory and ends with the cluster.
        nodes: Names of the nodes.
        shared: Directories of this machine's ``/tmp`` that the nodes see.
        scripts: Shell commands: what is set up on the controller and on each node, whose name is ``$0``, and what is
            done after every process has ended, also if the tests were killed. They know ``$folder``.
    """

    def __init__(
        self,
        folder: Path,
        nodes: Sequence[str],
        *shared: str | os.PathLike[str],
        scripts: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        self._lease, self.number = _lease()
        self.network = f"10.84.{self.number}"
        self._nodes = nodes
        self._daemons: dict[subprocess.Popen, Path] = {}
        self._process = subprocess.Popen(
            [
                *(*_UNSHARE, "sh", "-c", _CLUSTER_SCRIPT, "cluster"),
                *(str(folder), self.network, " ".join(nodes), _NODE_SCRIPT, *scripts),
                *outermost(folder, *shared),
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

    def processes(self, machine: str, program: str = "") -> list[int]:
        """Return the identifiers, as this machine counts, of the processes of a node or the controller.

        Of one program, if it is named.
        """
        namespace = processes.namespace(self.holders[machine])
        found = [pid for pid in processes.running() if processes.namespace(pid) == namespace]
        return [pid for pid in found if not program or _comm(pid) == program[:_COMM]]

    def start(self, machine: str, *argv: str, log: Path, **variables: str) -> None:
        """Start a daemon on a node or the controller, with more variables; what it writes is appended to ``log``."""
        with log.open("ab") as output:
            daemon = subprocess.Popen(
                [*self.enter(machine), *argv], env={**ENVIRONMENT, **variables}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._daemons[daemon] = log

    def ended(self) -> Path | None:
        """Return the log of a daemon that ended with an error of its own, if there is one."""
        return next((log for daemon, log in self._daemons.items() if (daemon.poll() or 0) > 0), None)

    def kill(self, machine: str, program: str, number: int = signal.SIGKILL) -> list[int]:
        """Send a signal to every process of a program on a node; wait until they ended of SIGTERM or SIGKILL."""
        pids = self.processes(machine, program)
        assert pids, f"{program} does not run on {machine}"
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            until(lambda: not set(pids) & set(self.processes(machine)))
        return pids

    def lose(self, node: str) -> None:
        """Lose a node as a machine that loses its power: every process ends, and no word of it reaches the others."""
        self.link(node, up=False)
        for pid in self.processes(node):
            if pid != self.holders[node]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def root(self, machine: str) -> str:
        """Return the path at which this machine sees the root folder of a node or the controller."""
        return f"/proc/{self.holders[machine]}/root"

    def link(self, node: str, *, up: bool) -> None:
        """Connect or cut a node's network: nothing goes through, and no process is notified."""
        self._ip(CONTROLLER, "link", "set", node, "up" if up else "down")

    def close(self) -> None:
        """End every process; the kernel takes the rest back."""
        processes.end_first(self._process)
        for daemon in self._daemons:
            daemon.wait(600)
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


def _comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _lease() -> tuple[socket.socket, int]:
    """Return a number that no other cluster of this machine has while the socket is open, in this process."""
    for number in range(250):
        lease = socket.socket(socket.AF_UNIX)
        try:
            lease.bind(f"\0scriptmode-cluster-{number}")
        except OSError:
            lease.close()
            continue
        return lease, number
    raise AssertionError("250 clusters run on this machine")


def outermost(*folders: str | os.PathLike[str]) -> list[str]:
    """Return the folders that lie in none of the others, and those that this checkout and the interpreter need."""
    seen = sorted({str(Path(folder).resolve()) for folder in (sys.prefix, sys.base_prefix, _CHECKOUT, *folders)})
    return [path for path in seen if not any(path.startswith(f"{above}/") for above in seen)]


def run_with(create: Callable[[Path], Any], why_not: Callable[[], str], command: Sequence[str]) -> int:
    """Run a command with a cluster of its own, of this directory; return the exit code, 1 where there can be none."""
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 1
    cluster = create(Path.cwd())
    try:
        return subprocess.run(command, env=cluster.environment, check=False).returncode
    finally:
        cluster.close()
