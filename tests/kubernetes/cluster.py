"""``python -m tests.kubernetes.cluster COMMAND ...``: run a command with a real Kubernetes cluster on one machine.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and DNS run as the machine ``controller``; containerd,
kubelet and kube-proxy run on each node (``fakes.machines``), with the settings of ``kubernetes.configuration``. The
programs are those that ``.ci/kubernetes`` builds. It needs root. ``kubectl`` and every other client find the cluster by
the variable ``KUBECONFIG``.

Pods use the image ``MACHINE_IMAGE``, in which a container sees this machine's system and the environment of the tests,
read-only. Nodes have no other images and no registry.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

# This directory's parent is on the path of the tests alone.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fakes.machines import CONTROLLER, ENVIRONMENT, Machines, run_with
from kubernetes import configuration, images
from kubernetes.configuration import EVICTION_SECONDS, MACHINE_IMAGE, NODE_TIMEOUT_SECONDS, NODES, PAUSE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    import pytest

_CHECKOUT = Path(__file__).parents[2]
_NEEDED = ("ip", "iptables", "unshare", "nsenter", "openssl", "socat")
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd")
_CGROUPS = Path("/sys/fs/cgroup")
_START_SECONDS = 600
_FATAL = re.compile(r"F\d{4} |Error|panic|containerd: ")

#: A kubelet would set these for the whole machine, where they have other values.
_SYSCTLS = (
    "vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 "
    "kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000"
)
_NODE_SCRIPT = f"""
mount --make-rshared /
for name in lib log; do
    mkdir -p "$folder/disk/$0/$name"
    mount --bind "$folder/disk/$0/$name" /var/$name
done
for setting in {_SYSCTLS}; do
    echo "${{setting#*=}}" >"/run/$(basename "${{setting%=*}}")"
    mount --bind "/run/$(basename "${{setting%=*}}")" "/proc/sys/${{setting%=*}}"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
"""
#: A killed process leaves its control group a little later.
_END_SCRIPT = f"""
name=$(basename "$folder")
for attempt in $(seq 100); do
    find {_CGROUPS}/*/$name -depth -type d -exec rmdir {{}} + 2>/dev/null || true
    ls -d {_CGROUPS}/*/$name >/dev/null 2>&1 || break
    sleep 0.1
done
rm -rf "$folder/disk"
"""


def why_not() -> str:
    """Return why this machine can have no cluster; "" if it can. The programs are built first."""
    if os.geteuid() != 0:
        return "a Kubernetes cluster of namespaces needs root"
    if missing := [name for name in _CONTROLLERS if not (_CGROUPS / name).is_dir()]:
        return f"Kubernetes 1.20 needs the control groups of version 1: {', '.join(missing)}"
    if _missing():
        subprocess.run([_CHECKOUT / ".ci" / "packages", "all"], check=False)
    if _missing():
        return f"a Kubernetes cluster needs {', '.join(_missing())}; run .ci/packages all"
    try:
        programs()
    except subprocess.CalledProcessError as error:
        return error.stderr.strip().splitlines()[-1]
    return ""


def _missing() -> list[str]:
    return [program for program in _NEEDED if not shutil.which(program, path=ENVIRONMENT["PATH"])]


@cache
def programs() -> Path:
    """Return the directory of Kubernetes' programs; building them takes minutes, once."""
    done = subprocess.run([_CHECKOUT / ".ci" / "kubernetes"], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


class Cluster:
    """A running cluster. ``environment`` makes clients ask it, as its administrator.

    ``address`` is that of this machine in the cluster's network: pods reach a server of the tests there.

    Args:
        shared: Folders of this machine's ``/tmp`` that the nodes see, for volumes of type hostPath.
        nodes: Names of the nodes.
    """

    def __init__(self, *shared: str | os.PathLike[str], nodes: Sequence[str] = NODES) -> None:
        # Of a killed run it stays in the folder for temporary files, without the nodes' data, and nothing else.
        self.folder = Path(tempfile.mkdtemp(prefix="scriptmode-kubernetes-"))
        self.folder.chmod(0o755)
        for name in ("log", "own", "disk"):
            (self.folder / name).mkdir()
        self.nodes = nodes
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.programs = programs()
        self.path = f"{self.programs}:{ENVIRONMENT['PATH']}"
        self.environment = {**ENVIRONMENT, "PATH": self.path, "KUBECONFIG": str(self.kubeconfig)}
        self.machines = Machines(self.folder, nodes, *shared, scripts=("", _NODE_SCRIPT, _END_SCRIPT))
        self.address = f"{self.machines.network}.250"
        try:
            configuration.write(self.folder, self.programs, self.machines.network, nodes)
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def audit_log(self) -> Path:
        """The file with an object in a line for each call that was answered; not of the cluster's own programs."""
        return self.folder / "log" / "audit"

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the variables by which clients of this process find the cluster."""
        monkeypatch.setenv("KUBECONFIG", str(self.kubeconfig))
        monkeypatch.setenv("PATH", self.path)

    def kubectl(self, *words: str, check: bool = True, **settings) -> subprocess.CompletedProcess:
        """Run kubectl; what it wrote is in ``stdout`` and ``stderr``."""
        settings = {"capture_output": True, "text": True, "env": self.environment, **settings}
        done = subprocess.run(["kubectl", *words], check=False, **settings)
        assert not (check and done.returncode), f"kubectl {' '.join(words)}: {done.stderr}"
        return done

    def get(self, *words: str) -> dict:
        """Return an object, or a list of them as ``items``, as ``kubectl get`` names them."""
        return json.loads(self.kubectl("get", *words, "--output=json").stdout)

    def apply(self, *objects: dict) -> None:
        """Create objects, or change them."""
        self.kubectl("apply", "--filename=-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def pod(self, name: str) -> dict:
        """Return a pod."""
        return self.get("pod", name)

    def ready(self, node: str) -> bool:
        """Return whether a node is ready."""
        done = self.kubectl("get", "node", node, "--output=json", check=False)
        conditions = json.loads(done.stdout)["status"].get("conditions", []) if not done.returncode else []
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def lose_node(self, node: str) -> None:
        """Lose a node as a machine that loses its power: every process ends, and no word of it reaches the others."""
        self.machines.lose(node)

    def restore_node(self, node: str) -> None:
        """Have a lost node again, as after a boot."""
        self.machines.link(node, up=True)
        self._start_node(node)
        self._await(lambda: self.ready(node))

    def cut(self, one: str, other: str = "") -> None:
        """Drop every packet between two pods; by default between a pod and this machine."""
        self._between(one, other, "-I")

    def mend(self, one: str, other: str = "") -> None:
        """Let packets between two pods, or a pod and this machine, go through again."""
        self._between(one, other, "-D")

    def stop_api_server(self) -> None:
        """End the API server, so that no client can connect, and the controllers: without it they lose their lease.

        Kubelets and DNS go on with what they know.
        """
        for program in ("kube-controller-manager", "kube-scheduler", "kube-apiserver"):
            self.machines.kill(CONTROLLER, program)

    def start_api_server(self) -> None:
        """Start the API server and the controllers, again after ``stop_api_server``, and wait until it answers."""
        network, folder = self.machines.network, self.folder
        self._daemon(
            CONTROLLER, "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={network}.254",
            f"--client-ca-file={folder}/authority.crt", "--authorization-mode=Node,RBAC",
            f"--tls-cert-file={folder}/apiserver.crt", f"--tls-private-key-file={folder}/apiserver.key",
            f"--kubelet-client-certificate={folder}/admin.crt", f"--kubelet-client-key={folder}/admin.key",
            "--kubelet-preferred-address-types=InternalIP", "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={configuration.SERVICES}", "--insecure-port=0", "--allow-privileged=true",
            f"--service-account-issuer=https://kubernetes.default.svc.{configuration.DOMAIN}",
            f"--service-account-key-file={folder}/accounts.crt",
            f"--service-account-signing-key-file={folder}/accounts.key",
            f"--audit-policy-file={folder}/audit.policy", f"--audit-log-path={self.audit_log}",
            f"--default-not-ready-toleration-seconds={EVICTION_SECONDS}",
            f"--default-unreachable-toleration-seconds={EVICTION_SECONDS}",
        )  # fmt: skip
        self._await(lambda: self.kubectl("get", "--raw=/readyz", check=False).stdout == "ok")
        self._start_controllers()

    def delete_all(self) -> None:
        """Delete what tests made in the default namespace, at once."""
        kinds = "jobs,statefulsets,deployments,daemonsets,pods,persistentvolumeclaims"
        self.kubectl("delete", kinds, "--all", "--grace-period=0", "--force", "--wait=false")
        # Without the cluster's own: a pod made before the token is there again would wait for that of its service account.
        own = {"services": "metadata.name!=kubernetes", "configmaps": "metadata.name!=kube-root-ca.crt",
               "secrets": "type!=kubernetes.io/service-account-token"}  # fmt: skip
        for kind, selector in own.items():
            self.kubectl("delete", kind, f"--field-selector={selector}")
        self.kubectl("delete", "persistentvolumes", "--all")
        self._await(lambda: not self.get("pods")["items"])

    def close(self) -> None:
        """End everything; nothing is left of it."""
        try:
            self.machines.close()
        finally:
            shutil.rmtree(self.folder)

    def _start(self) -> None:
        """Start the daemons in the order in which they need each other, and wait until the nodes are ready."""
        self._daemon(CONTROLLER, "etcd", f"--data-dir={self.folder}/own/etcd")
        for node in ("", *self.nodes):
            group = configuration.cgroup(self.folder, node)
            for controller in _CONTROLLERS:
                (_CGROUPS / controller / group).mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                cpuset = _CGROUPS / "cpuset" / group
                (cpuset / name).write_text((cpuset.parent / name).read_text())
        for number, node in enumerate(self.nodes, 1):
            self._route(number, node)
        with ThreadPoolExecutor() as pool:
            runtimes = [pool.submit(self._start_runtime, node) for node in self.nodes]
            self.start_api_server()
            script = Path(__file__).parent / "dns.py"
            self._daemon(CONTROLLER, sys.executable, str(script), str(self.kubeconfig), f"{self.machines.network}.254")
            for runtime in runtimes:
                runtime.result()
        for archive in self._own_images():
            self._import(io.BytesIO(archive))
        for node in self.nodes:
            self._start_kubelet(node)
            self._start_proxy(node)
        self._await(lambda: all(self.ready(node) for node in self.nodes))
        self._await(lambda: not self.kubectl("get", "serviceaccount", "default", check=False).returncode)

    def _start_controllers(self) -> None:
        folder = self.folder
        common = ("--leader-elect=false", "--port=0", f"--cert-dir={folder}/own/certificates")
        self._daemon(
            CONTROLLER, "kube-controller-manager", *common, f"--kubeconfig={folder}/kube-controller-manager.kubeconfig",
            f"--root-ca-file={folder}/authority.crt", f"--service-account-private-key-file={folder}/accounts.key",
            "--use-service-account-credentials", f"--flex-volume-plugin-dir={folder}/own/plugins",
            "--node-monitor-period=1s", f"--node-monitor-grace-period={NODE_TIMEOUT_SECONDS}s",
        )  # fmt: skip
        self._daemon(CONTROLLER, "kube-scheduler", *common, f"--kubeconfig={folder}/kube-scheduler.kubeconfig")

    def _start_node(self, node: str) -> None:
        self._start_runtime(node)
        self._start_kubelet(node)
        self._start_proxy(node)

    def _start_runtime(self, node: str) -> None:
        """Start a node's containerd, and wait until it answers."""
        self._daemon(node, "containerd", f"--config={self.folder}/{node}.containerd")
        words = [*self.machines.enter(node), f"{self.programs}/ctr", "version"]
        self._await(lambda: not subprocess.run(words, check=False, capture_output=True, env=ENVIRONMENT).returncode)

    def _start_kubelet(self, node: str) -> None:
        self._daemon(
            node, "kubelet", f"--config={self.folder}/{node}.kubelet", f"--kubeconfig={self.folder}/{node}.kubeconfig",
            f"--hostname-override={node}", f"--node-ip={self._node_address(node)}", "--container-runtime=remote",
            "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--oom-score-adj=0",
            f"--pod-infra-container-image={PAUSE_IMAGE}", "--volume-plugin-dir=/var/lib/kubelet/volume-plugins",
        )  # fmt: skip

    def _start_proxy(self, node: str) -> None:
        self._daemon(
            node, "kube-proxy", f"--kubeconfig={self.folder}/kube-proxy.kubeconfig", f"--hostname-override={node}",
            "--proxy-mode=iptables", f"--cluster-cidr={configuration.ALL_PODS}", "--oom-score-adj=0",
            "--conntrack-max-per-core=0", "--conntrack-min=0", "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
        )  # fmt: skip

    def _own_images(self) -> tuple[bytes, bytes]:
        """Return the archives of the images that every cluster has."""
        pause = images.tar({"pause": (self.programs / "pause").read_bytes()})
        shown = {path: link or None for path, link in configuration.machine_directories().items()}
        empty = dict.fromkeys(("/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", "/opt/ml", "/root", "/home"))
        machine = images.tar({**empty, "/var/run": "/run", **shown})
        variables = [f"PATH={sys.prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin", configuration.MACHINE_MARK]
        return (
            images.archive(PAUSE_IMAGE, pause, Entrypoint=["/pause"]),
            images.archive(MACHINE_IMAGE, machine, Env=variables),
        )

    def _import(self, archive: BinaryIO) -> None:
        """Copy the image of an archive to every node at once."""
        words = [f"{self.programs}/ctr", "--namespace=k8s.io", "images", "import", "-"]
        nodes = [
            subprocess.Popen([*self.machines.enter(node), *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            for node in self.nodes
        ]
        while chunk := archive.read(1 << 20):
            for node in nodes:
                node.stdin.write(chunk)
        for node in nodes:
            node.stdin.close()
            assert node.wait(_START_SECONDS) == 0, "an image could not be imported"

    def _await(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true. A daemon that ends by itself is an error, with the end of its log."""
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"the cluster is not as expected after {_START_SECONDS} s"
            if ended := self.machines.ended():
                fatal = [line for line in ended.read_text().splitlines() if _FATAL.match(line)]
                raise AssertionError(f"{ended.name} ended: {fatal[:1]}")
            time.sleep(0.2)

    def _route(self, number: int, node: str) -> None:
        """Let a node's pods reach those of the others by their addresses, and this machine by the node's."""
        for other, _ in enumerate(self.nodes, 1):
            if other != number:
                route = f"ip route add {configuration.PODS.format(other)} via {self.machines.network}.{other}"
                self.run_on(node, *route.split())
        outside = ("-s", configuration.ALL_PODS, "!", "-d", configuration.ALL_PODS)
        self.run_on(node, "iptables", "-w", "-t", "nat", "-A", "POSTROUTING", *outside, "-j", "MASQUERADE")

    def _between(self, one: str, other: str, action: str) -> None:
        pods = [self.pod(name) for name in (one, other) if name]
        addresses = [pod["status"]["podIP"] for pod in pods] + ([] if other else [self.address])
        for node in {pod["spec"]["nodeName"] for pod in pods}:
            for source, target in (addresses, addresses[::-1]):
                self.run_on(node, "iptables", "-w", action, "FORWARD", "-s", source, "-d", target, "-j", "DROP")

    def run_on(self, machine: str, *argv: str) -> None:
        """Run a command on a node."""
        subprocess.run([*self.machines.enter(machine), *argv], check=True, env=ENVIRONMENT)

    def _node_address(self, node: str) -> str:
        return f"{self.machines.network}.{self.nodes.index(node) + 1}"

    def _daemon(self, machine: str, program: str, *options: str) -> None:
        """Start a daemon; its log is ``log/MACHINE.PROGRAM``."""
        log = self.folder / "log" / f"{machine}.{Path(program).name}"
        self.machines.start(machine, program, *options, log=log, PATH=self.path)


if __name__ == "__main__":
    sys.exit(run_with(Cluster, why_not, sys.argv[1:]))
