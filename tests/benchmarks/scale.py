"""What grows with a job's hosts, up to 1,000 that only join, write, fail and end, and with a directory's jobs."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.benchmarks.command_line import SCRIPTMODE, make_jobs
from tests.benchmarks.figures import Figure, amount
from tests.fakes.host_folders import free_ports

from scriptmode_local._agent.host_link import HostLinks
from scriptmode_local._hosts.fleet import StartedAgent
from scriptmode_local._store.agent_log import AgentLog
from scriptmode_local._store.job_store import JobStore
from scriptmode_runtime import contract
from scriptmode_runtime._launch import preview
from scriptmode_runtime._peers.connection import Connection
from scriptmode_runtime._peers.lead import Lead
from scriptmode_runtime._peers.member import Member
from scriptmode_runtime._processes import system
from scriptmode_runtime._processes.loop import Loop
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime._values import cluster
from scriptmode_runtime._values.failure import HostFailure
from scriptmode_runtime.plan import Command

HOSTS = amount((10, 100, 1000), smallest=(2, 4, 8))
#: Of each host in a second, and the seconds in which they are written.
LINES, SECONDS = 10, amount(5, smallest=1)
EVENT = "scripts_started"
JOBS = amount(100_000, smallest=10)
#: The kernel's limit of one variable or argument: 32 pages (execve(2)).
LONGEST = 131_072
FORK = multiprocessing.get_context("fork")


def run(folder: str) -> list[Figure]:
    system.raise_file_limit(8 * HOSTS[-1])
    joined = {count: in_child(members, count) for count in HOSTS}
    heard = {count: in_child(listen, count, folder) for count in HOSTS}
    most = HOSTS[-1]
    make_jobs(store := JobStore(Path(folder) / "jobs"), JOBS)
    first, again = listing(store.data_dir), listing(store.data_dir)
    return [
        *(Figure(f"{count:,} hosts: all have joined", joined[count]["joined"], "s") for count in HOSTS[:-1]),
        Figure(f"{most:,} hosts: all have joined", joined[most]["joined"], "s", 10),
        Figure("growth of that from the second row to the third: n to the", power(joined, "joined"), "", 1.5),
        Figure(f"{most:,} hosts: a failure of one is known to all", joined[most]["failed"], "s", 2),
        Figure(f"{most:,} hosts: messages of the first host, for each other", joined[most]["messages"], "", 6),
        Figure(f"{most:,} hosts: bytes of these, for each other", joined[most]["bytes"], "B"),
        Figure(f"{most:,} hosts: memory of the first host's launcher", joined[most]["memory"], "MiB", 100),
        Figure(f"{most:,} hosts, {LINES} lines a second each: CPU of the job's agent", heard[most]["cpu"], "s/s", 1),
        Figure("growth of that from 100 hosts: n to the", power(heard, "cpu"), "", 1.2),
        Figure(f"{most:,} hosts: memory of the job's agent's links and logs", heard[most]["memory"], "MiB", 200),
        *variables(most),
        Figure(f"scriptmode list, {JOBS:,} jobs; none of them listed before", first, "s"),
        Figure("the same again", again, "s", 5),
    ]


def listing(data_dir: Path) -> float:
    """Return the seconds of a list of all jobs."""
    began = time.monotonic()
    command, variables = (SCRIPTMODE, "list"), {**os.environ, "SCRIPTMODE_DATA_DIR": str(data_dir)}
    listed = subprocess.run(command, check=True, capture_output=True, env=variables)
    assert len(listed.stdout.splitlines()) >= JOBS
    return time.monotonic() - began


def power(measured: dict[int, dict[str, float]], name: str) -> float:
    """Return the exponent with which a figure grows from the second number of hosts to the third."""
    few, many = HOSTS[1:]
    return math.log(measured[many][name] / measured[few][name]) / math.log(many / few)


def in_child(measure: Any, *arguments: object) -> dict[str, float]:
    """Return the figures that a function sends in a process of its own."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=measure, args=(there, *arguments))
    process.start()
    there.close()
    figures = here.recv()
    process.join(30)
    return dict(figures)


def own_memory() -> float:
    """Return the private memory of this process in MiB: what it shares with its parent is not its own."""
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_")) / 1024


def members(report: Any, count: int) -> None:
    """Join as all hosts but the first, from one process; one fails once all have joined."""
    (port,) = free_ports(1)
    names = [f"algo-{number + 1}" for number in range(count)]
    places = {name: {"address": "127.0.0.1", "ports": {"peers": port}} for name in names}
    whole = cluster.parse({"hosts": places, "single_machine": True}, names, names[0], "/opt/ml")
    ours, theirs = FORK.Pipe()
    FORK.Process(target=lead, args=(theirs, whole), daemon=True).start()
    # Its end is the end of what is received here.
    theirs.close()
    ours.recv()
    began = time.monotonic()
    with Loop() as loop:
        hosts = [Member(whole._replace(this=host), b"secret", loop.selector, loop.clock) for host in whole.hosts[1:]]
        for host in hosts:
            host.start()
            host.announce(EVENT)

        def settle(done: Any) -> float:
            # The hosts have a processor each; here one process looks at their deadlines.
            while not all(map(done, hosts)):
                loop.once(loop.clock() + 0.02)
                for host in hosts:
                    host.tick()
            return loop.clock()

        joined = settle(lambda host: host.reached(EVENT))
        hosts[-1].fail(HostFailure(names[-1], "worker", 1, "ValueError: of one"))
        failed = settle(lambda host: host.failure is not None)
        ours.send("end")
        report.send({"joined": joined - began, "failed": failed - joined, **ours.recv()})


def lead(report: Any, whole: cluster.Cluster) -> None:
    """Lead as the first host's launcher does, until asked to end."""
    sent: list[int] = []
    send = Connection.send

    def counted(connection: Connection, **message: object) -> None:
        sent.append(len(json.dumps(message)) + 1)
        send(connection, **message)

    Connection.send = counted  # type: ignore[method-assign]
    before = own_memory()
    with Loop() as loop:
        first = Lead(whole, b"secret", loop.selector, loop.clock)
        first.start()
        loop.tickers.append(first)
        report.send("listens")
        first.announce(EVENT)
        loop.until(report.poll, None, poll=0.05)
        others = len(whole.hosts) - 1
        figures = {"messages": len(sent) / others, "bytes": sum(sent) / others}
        report.send({**figures, "memory": own_memory() - before})
        first.close()


def listen(report: Any, count: int, folder: str) -> None:
    """Handle the lines of all hosts' agents as the job's agent does."""
    before = own_memory()
    names = [f"algo-{number + 1}" for number in range(count)]
    pipes = {name: os.pipe() for name in names}
    logs = Path(folder, f"logs-{count}")
    logs.mkdir()
    writer = FORK.Process(target=write, args=({name: pipe[1] for name, pipe in pipes.items()},))
    writer.start()
    for pipe in pipes.values():
        os.close(pipe[1])
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    links = HostLinks(AgentLog(lambda name: logs / f"{name}.log", names).tell_host)
    alive: Any = SimpleNamespace(pid=os.getpid(), poll=lambda: None)
    links.connect(StartedAgent((name,), alive, null, pipe[0]) for name, pipe in pipes.items())
    used, began = time.process_time(), time.monotonic()
    while any(descriptor >= 0 for descriptor in links.descriptors):
        time.sleep(0.05)
        links.poll()
    took = time.process_time() - used
    written = sum(len(file.read_text().splitlines()) for file in logs.iterdir())
    assert written == count * LINES * SECONDS
    report.send({"cpu": took / (time.monotonic() - began), "memory": own_memory() - before})


def write(pipes: dict[str, int]) -> None:
    """Write the lines of all hosts, evenly."""
    for step in range(SECONDS * LINES):
        for name, pipe in pipes.items():
            line = {"event": "log", "host": name, "text": f"step {step} loss 0.123"}
            os.write(pipe, json.dumps(line).encode() + b"\n")
        time.sleep(1 / LINES)


def variables(count: int) -> list[Figure]:
    """Return how long what the kernel limits becomes: TF_CONFIG of a host, and all that mpirun is started with."""
    names = [f"algo-{number + 1}" for number in range(count)]
    files = {contract.RESOURCE_CONFIG_FILE: {"current_host": names[0], "hosts": names}}
    longest = {}
    for parameter in (contract.PARAMETER_SERVER_ENABLED, contract.MPI_ENABLED):
        files[contract.HYPERPARAMETERS_FILE] = {"sagemaker_program": "train.py", parameter: "true"}
        here = preview.host_environment("/opt/ml", files, {"PATH": "/bin"}, gpus=0)
        plan = plan_for(here, Command((), {}, "/opt/ml", "python"))
        for process in filter(None, (plan.main, *plan.trainers)):
            longest[parameter] = max(map(len, (*process.argv, *process.env.values())))
    return [
        Figure(f"{count:,} hosts: longest variable or argument, {name}", size, "B", LONGEST)
        for name, size in zip(("parameter servers", "MPI"), longest.values())
    ]
