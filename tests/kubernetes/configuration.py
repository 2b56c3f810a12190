"""What the cluster's daemons read: certificates, kubeconfigs, settings of containerd, of pods' network and of kubelets.

* A node that does not answer is lost after ``NODE_TIMEOUT_SECONDS``; its pods are told after ``EVICTION_SECONDS`` more.
  The defaults are 40 s and 300 s.
* Pods of node number K have addresses ``10.85.K.x``, services ``10.86.x.x``. Both are known inside the cluster alone.
* A kubelet neither evicts pods nor removes images because this machine's disk is full.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fakes.machines import CONTROLLER, outermost

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = ("node1", "node2")
NODE_TIMEOUT_SECONDS = 12
EVICTION_SECONDS = 3
PODS = "10.85.{}.0/24"
ALL_PODS = "10.85.0.0/16"
SERVICES = "10.86.0.0/16"
_API_SERVICE = "10.86.0.1"
#: Not the usual one, cluster.local: pods find it by their resolver.
DOMAIN = "cluster.test"
#: The images of the cluster's own: of a pod's first container, and the file system of this machine.
PAUSE_IMAGE = "docker.io/scriptmode/pause:1"
MACHINE_IMAGE = "docker.io/scriptmode/machine:1"
#: The name of a registry that a test may serve at the address of this machine in the cluster's network.
REGISTRY, REGISTRY_PORT = "registry.test", 5000
#: By this variable the wrapper of runc knows a container of that image.
MACHINE_MARK = "SCRIPTMODE_MACHINE_IMAGE=1"

_CLIENTS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
}
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: scriptmode
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {user}@scriptmode
  context:
    cluster: scriptmode
    user: {user}
current-context: {user}@scriptmode
"""
#: Docker's socket, aufs, btrfs and others are not used. The file system of a container is an overlay.
_CONTAINERD = """\
version = 2
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
# Without CAP_SYS_RESOURCE it cannot be lowered.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."{registry}"]
endpoint = ["http://{network}.250:{port}"]
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{programs}"
conf_dir = "{folder}/{node}.cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{folder}/runc"
"""
#: A container of the machine image sees the machine's directories.
_RUNC = """\
#!/bin/sh
take= bundle=
for word; do
    if [ "$take" ]; then bundle=$word take=; fi
    if [ "$word" = --bundle ]; then take=1; fi
done
case " $* " in
    *" create "*)
        if grep -q '"{mark}"' "$bundle/config.json"; then
            sed -i 's#"mounts":\\[#&{mounts},#' "$bundle/config.json"
        fi ;;
esac
exec {programs}/runc "$@"
"""

_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "users": [user for user, _ in _CLIENTS.values() if user.startswith("system:")]},
        {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "Metadata"},
    ],
}


def write(folder: Path, programs: Path, network: str, names: Sequence[str]) -> None:
    """Write all of it below ``folder``, for nodes ``network``.1 and so on and programs in a directory."""
    server = f"https://{network}.254:6443"
    addresses = f"IP:{network}.254,IP:{_API_SERVICE},IP:127.0.0.1"
    services = ",".join(f"DNS:kubernetes{rest}" for rest in ("", ".default", ".default.svc", f".default.svc.{DOMAIN}"))
    _openssl(folder, "authority", "/CN=scriptmode-tests", "-addext", "basicConstraints=critical,CA:TRUE")
    _openssl(folder, "accounts", "/CN=accounts")
    _sign(
        folder, "apiserver", "/CN=kube-apiserver", "-addext", f"subjectAltName={addresses},{services},DNS:{CONTROLLER}"
    )
    for name, (user, group) in (_CLIENTS | {node: (f"system:node:{node}", "system:nodes") for node in names}).items():
        _sign(folder, name, f"{group and '/O=' + group}/CN={user}", "-addext", "extendedKeyUsage=clientAuth")
        _kubeconfig(folder, name, server, user)
    (folder / "audit.policy").write_text(json.dumps(_AUDIT))
    mounts = ",".join(json.dumps(mount).replace("#", "\\#") for mount in _machine_mounts())
    (folder / "runc").write_text(_RUNC.format(mark=MACHINE_MARK, mounts=mounts, programs=programs))
    (folder / "runc").chmod(0o755)
    for number, node in enumerate(names, 1):
        words = {"folder": folder, "node": node, "programs": programs, "pause": PAUSE_IMAGE}
        words |= {"registry": REGISTRY, "port": REGISTRY_PORT, "network": network}
        (folder / f"{node}.containerd").write_text(_CONTAINERD.format(**words))
        (folder / f"{node}.cni").mkdir()
        (folder / f"{node}.cni" / "pods.conflist").write_text(json.dumps(_cni(number)))
        (folder / f"{node}.kubelet").write_text(json.dumps(_kubelet(folder, node, network)))


def machine_directories() -> dict[str, str]:
    """Return what the machine image shows: the system's directories, and the environment of the tests.

    An empty value is a directory, another one the target of a symbolic link.
    """
    names = [name for name in ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64") if Path(name).exists()]
    links = {name: str(Path(name).readlink()) for name in names if Path(name).is_symlink()}
    return {
        name: links.get(name, "") for name in (*names, *(path for path in outermost() if not path.startswith("/usr/")))
    }


def cgroup(folder: Path, node: str = "") -> str:
    """Return the control group of a cluster's pods, or of a node's: a kubelet removes those of pods that it has not."""
    return f"{folder.name}/{node}" if node else folder.name


def _machine_mounts() -> list[dict]:
    shown = [path for path, link in machine_directories().items() if not link]
    return [{"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]} for path in shown]


def _kubelet(folder: Path, node: str, network: str) -> dict:
    """Return a kubelet's settings."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": f"{folder}/authority.crt"}, "anonymous": {"enabled": False}},
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{cgroup(folder, node)}", "clusterDNS": [f"{network}.254"],
        "clusterDomain": DOMAIN, "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "failSwapOn": False, "fileCheckFrequency": "0s", "imageGCHighThresholdPercent": 100, "maxOpenFiles": 100000,
        "nodeLeaseDurationSeconds": NODE_TIMEOUT_SECONDS, "nodeStatusUpdateFrequency": "2s", "syncFrequency": "10s",
        "serializeImagePulls": False,
    }  # fmt: skip


def _cni(number: int) -> dict:
    """Return the network of a node's pods: each has a link to the node, which routes."""
    ranges = [[{"subnet": PODS.format(number)}]]
    address = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": address}]}


def _openssl(folder: Path, name: str, subject: str, *options: str) -> None:
    """Make a key and a certificate."""
    files = ("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30")
    subprocess.run(
        ["openssl", "req", "-x509", *kind, "-subj", subject, *options, *files], check=True, capture_output=True
    )


def _sign(folder: Path, name: str, subject: str, *options: str) -> None:
    """Make a key and a certificate of the cluster's authority."""
    authority = ("-CA", f"{folder}/authority.crt", "-CAkey", f"{folder}/authority.key")
    _openssl(folder, name, subject, *authority, "-addext", "basicConstraints=CA:FALSE", *options)


def _kubeconfig(folder: Path, name: str, server: str, user: str) -> None:
    data = {
        key: base64.b64encode((folder / file).read_bytes()).decode()
        for key, file in (("authority", "authority.crt"), ("certificate", f"{name}.crt"), ("key", f"{name}.key"))
    }
    (folder / f"{name}.kubeconfig").write_text(_KUBECONFIG.format(server=server, user=user, **data))
