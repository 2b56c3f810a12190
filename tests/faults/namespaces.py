"""One machine as a cluster: hosts that are kernel namespaces, joined by a bridge in a namespace of its own.

Nothing of it has a name outside: all hosts live below one process namespace, whose first process ends as soon as the
tests' end of its input is closed. With it the kernel ends every process, interface, mount and namespace of the cluster,
after an interrupted run too.
"""

import os
import subprocess
import sys
from pathlib import Path

from faults import processes
from processes.launchers import until

INTERFACE = "eth1"
_CHECKOUT = Path(__file__).parents[2]
_NETWORK = "10.83.0"
#: Some programs stand where a user's PATH does not lead.
_ENVIRONMENT = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
_SWITCH = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

#: The cluster's first process. A place for /opt/ml is made without touching the machine's own /opt.
_SWITCH_SCRIPT = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/opt /run/tmp
mount --rbind /tmp /run/tmp
if [ ! -d /opt/ml ]; then
    mount --rbind /opt /run/opt
    mount -t tmpfs tmpfs /opt
    for path in /run/opt/*; do
        name=/opt/${path##*/}
        if [ -d "$path" ]; then mkdir "$name"; elif [ -e "$path" ]; then touch "$name"; else continue; fi
        mount --rbind "$path" "$name"
    done
    mkdir /opt/ml
fi
echo "127.0.0.1 localhost" >/run/hosts
ip link add name switch type bridge
ip link set switch up
number=0
while [ $number -lt "$1" ]; do
    number=$((number + 1))
    host=algo-$number
    echo "$2.$number $host" >>/run/hosts
    ip netns add $host
    ip link add name $host type veth peer name "$3" netns $host
    ip link set $host master switch up
    ip -n $host link set lo up
    ip -n $host address add "$2.$number/24" dev "$3"
    ip -n $host link set "$3" up
    SCRIPTMODE_FAULTS_HOST=$host nsenter --net=/run/netns/$host unshare --mount --uts --ipc sh -c "$4" $host &
done
echo switched
exec cat
"""
#: Holds one host's namespaces.
_HOST_SCRIPT = """
set -e
hostname "$0"
mount --bind /run/hosts /etc/hosts
for folder in /opt/ml /dev/shm /tmp; do mount -t tmpfs tmpfs $folder; done
exec sleep infinity
"""
#: Empties what one job leaves on a host; of the machine's /tmp only the named folders are seen.
_FRESH_SCRIPT = """
for folder in /opt/ml /dev/shm /tmp; do umount --lazy --recursive $folder || true; done
mount -t tmpfs -o "size=$1" tmpfs /opt/ml
shift
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
for path; do
    case "$path" in /tmp/*) mkdir -p "$path"; mount --rbind "/run$path" "$path" ;; esac
done
"""


class Namespaces:
    """The namespaces of ``count`` hosts, algo-1 to algo-n, each with an address, ``/opt/ml`` and ``/tmp`` of its own.

    Of the machine's ``/tmp`` they see ``folders`` and what the interpreter and this checkout have there.
    """

    def __init__(self, count, *folders):
        self.hosts = [f"algo-{number + 1}" for number in range(count)]
        seen = sorted({str(folder) for folder in (sys.prefix, sys.base_prefix, _CHECKOUT, *folders)})
        # What lies in another of them is seen with it.
        self._folders = [path for path in seen if not any(path.startswith(f"{above}/") for above in seen)]
        self.user = _user_namespace()
        command = ["unshare", *self.user, *_SWITCH, "sh", "-c", _SWITCH_SCRIPT, "switch"]
        self._process = subprocess.Popen(
            [*command, str(count), _NETWORK, INTERFACE, _HOST_SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_ENVIRONMENT,
        )
        try:
            assert self._process.stdout.readline() == b"switched\n", "the cluster's switch could not be set up"
            (self.init,) = processes.children(self._process.pid)
            self._pids = processes.namespace(self.init)
            self.holders = until(self._find_holders, 10, lambda: f"the hosts {self.hosts} did not come up")
        except BaseException:
            self.close()
            raise

    def enter(self, host):
        """Give the words before a command that put it into a host."""
        return self._enter(self.holders[host], "--net", "--mount", "--uts", "--ipc", "--pid")

    def run(self, host, script, *words):
        """Run a few shell commands on a host; give what they print."""
        return subprocess.run(
            [*self.enter(host), "sh", "-ec", script, "sh", *words],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=_ENVIRONMENT,
        ).stdout

    def fresh(self, host, room):
        """Forget what an earlier job left on a host; ``room`` is what its ``/opt/ml`` holds."""
        self.run(host, _FRESH_SCRIPT, room, *self._folders)

    def link(self, host, state):
        """Set a host's link ``up`` or ``down``: nothing goes through, and no process is notified."""
        subprocess.run(
            [*self._enter(self.init, "--net"), "ip", "link", "set", host, state], check=True, env=_ENVIRONMENT
        )

    def root(self, host):
        """Give the path at which this machine sees a host's root folder."""
        return f"/proc/{self.holders[host]}/root"

    def close(self):
        """End every process of every host; the kernel takes the rest back."""
        processes.end_first(self._process)

    def _enter(self, pid, *kinds):
        user = ("--user", "--preserve-credentials") if self.user else ()
        return ("nsenter", "--target", str(pid), *user, *kinds, "--")

    def _find_holders(self):
        found = {}
        for pid in processes.children(self.init):
            name = processes.variables(pid).get("SCRIPTMODE_FAULTS_HOST")
            if name and processes.words(pid)[:1] == ["sleep"]:
                found[name] = pid
        return found if sorted(found) == sorted(self.hosts) else None


def _user_namespace():
    """Give what makes namespaces possible here: nothing for root with all rights, else one user namespace around them."""
    for user in ((), ("--user", "--map-root-user")):
        probe = ["unshare", *user, *_SWITCH, "ip", "link", "add", "name", "probe", "type", "bridge"]
        tried = subprocess.run(probe, check=False, capture_output=True, text=True, env=_ENVIRONMENT)
        if tried.returncode == 0:
            return user
    raise AssertionError(
        f"hosts by namespaces need root, or user namespaces, and .ci/packages all: {tried.stderr.strip()}"
    )
