"""Many hosts, several of which end: the cost of the chief, and the delay until every host knows."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
INHERITED = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
HOSTS = amount(1000, smallest=4)
CHIEFS, RUNS = amount(3, smallest=1), amount(5, smallest=1)
#: The hosts of a simulated cluster but the first, on one selector of one process: real connections, real words.
MEMBERS = """
import resource, selectors, sys, time
from scriptmode_runtime import cluster, contract, environment
from scriptmode_runtime.peers.member import Member
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
here = environment.read(sys.argv[1], {})
selector = selectors.DefaultSelector()
members = []
for host in here.cluster.hosts[1:]:
    member = Member(here.cluster._replace(this=host), here.cluster.secret.encode(), selector, time.monotonic)
    member.start()
    for event in ("hosts_ready", "trainers_ended"):
        member.announce(event)
    members.append(member)
left = list(members)
while left:
    for key, _ in selector.select(0.05):
        key.data()
    for member in left:
        member.tick()
    left = [member for member in left if not member.finished]
"""


def run(folder: str) -> list[Figure]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    try:
        cpu = [chief(Path(folder) / f"many-{number}") for number in range(CHIEFS)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
    after = [after_mpirun(Path(folder) / f"mpi-{number}") for number in range(RUNS)]
    spread = [all_ended(Path(folder) / f"fails-{number}") for number in range(RUNS)]
    return [
        Figure(f"CPU of the chief of {HOSTS} hosts, start to end", statistics.median(cpu), "s", 2),
        Figure("mpirun's success to the end of all hosts", statistics.median(after), "s", 0.5),
        Figure("failure on one host of 3 to the end of all, at worst", max(spread), "s", 3),
    ]


def host_folder(folder: Path, hosts: int, this: int, code: str, places: dict[str, object], **switches: object) -> Path:
    """Write one host's /opt/ml tree."""
    names = [f"algo-{number + 1}" for number in range(hosts)]
    base = folder / names[this]
    config = base / "input" / "config"
    config.mkdir(parents=True)
    (base / "code").mkdir()
    (base / "code" / "train.py").write_text(code)
    switches = {"sagemaker_program": "train.py", "sagemaker_job_name": "measured", **switches}
    cluster = {"hosts": places, "single_machine": True, "secret": "measured"}
    for name, content in {
        "hyperparameters": {key: json.dumps(value) for key, value in switches.items()},
        "resourceconfig": {"current_host": names[this], "hosts": names, "network_interface_name": "lo"},
        "inputdataconfig": {},
        "scriptmode": cluster,
    }.items():
        (config / f"{name}.json").write_text(json.dumps(content))
    return base


def places(folder: Path, hosts: int) -> dict[str, object]:
    """Return an address on this machine for every host."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return {
        f"algo-{number + 1}": {
            "address": "127.0.0.1",
            "base_dir": str(folder / f"algo-{number + 1}"),
            "ports": {"peers": ports[min(number, 2)], "mirrored": ports[3 + min(number, 2)]},
        }
        for number in range(hosts)
    }


def train(base: Path, **variables: str) -> subprocess.Popen[bytes]:
    env = {**INHERITED, "PYTHONPATH": str(ENTRYPOINTS), "SAGEMAKER_BASE_DIR": str(base), **variables}
    with base.with_suffix(".log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "scriptmode_runtime"], env=env, stdout=log, stderr=log)


def chief(folder: Path) -> float:
    """Run the first host of many as its own ``train``; give its CPU seconds without its script's."""
    switch = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
    code = "import resource, sys; print('script', sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))"
    base = host_folder(folder, HOSTS, 0, code, places(folder, HOSTS), **switch)
    env = {**INHERITED, "PYTHONPATH": str(ENTRYPOINTS)}
    with subprocess.Popen([sys.executable, "-c", MEMBERS, base], env=env) as members:
        process = train(base)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        members.wait(60)
    said = base.with_suffix(".log").read_text()
    found = re.search(r"script ([0-9.]+)", said)
    if process.returncode or not found:
        raise RuntimeError(f"the chief of {HOSTS} hosts ended with {process.returncode}: {said[-500:]}")
    return usage.ru_utime + usage.ru_stime - float(found[1])


def after_mpirun(folder: Path) -> float:
    """Run two hosts of a job that ends well under mpirun; give how long after mpirun's end the last one ended."""
    where = places(folder, 2)
    bases = [host_folder(folder, 2, number, "print('well')", where, sagemaker_mpi_enabled=True) for number in range(2)]
    launchers = [train(base) for base in bases]
    log = bases[0].with_suffix(".log")
    ended_at = wait_for(log, b"mpirun ended with exit code 0")
    if any(launcher.wait(60) for launcher in launchers):
        raise RuntimeError(f"a job that should end well failed: {log.read_text()[-500:]}")
    return time.monotonic() - ended_at


def all_ended(folder: Path) -> float:
    """Fail one of three hosts while the others are busy and deaf to SIGTERM; give how long until all ended."""
    where = places(folder, 3)
    code = """import os, signal, sys, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    print("fails", flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""
    switch = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
    bases = [host_folder(folder, 3, number, code, where, **switch) for number in range(3)]
    launchers = [train(base) for base in bases[::2]]
    for base in bases[::2]:
        wait_for(base.with_suffix(".log"), b"worker started")
    launchers.append(train(bases[1]))
    failed_at = wait_for(bases[1].with_suffix(".log"), b"fails")
    codes = {launcher.wait(60) for launcher in launchers}
    if codes != {9}:
        raise RuntimeError(f"every host should end with 9, and they ended with {codes}")
    return time.monotonic() - failed_at


def wait_for(log: Path, text: bytes) -> float:
    """Wait until a log holds a text; give when."""
    deadline = time.monotonic() + 60
    while text not in log.read_bytes():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log} does not say {text!r}: {log.read_text()[-500:]}")
        time.sleep(0.002)
    return time.monotonic()
