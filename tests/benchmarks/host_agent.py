"""A host's agent on this machine: what it adds to the start and the end of a host, and the memory of its process."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount, in_turn

from scriptmode.platforms.local.agent.host_agent import HostAgent
from scriptmode.platforms.local.agent.host_link import HostLinks
from scriptmode.platforms.local.hosts.process_fleet import ProcessFleet
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobFolder, JobStore
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.platforms.local.system.forked_tasks import Tasks
from scriptmode.request.parse import parse_request

#: What a host's agent may add, on one machine.
MILLISECONDS, MEGABYTES = 20.0, 15.0


def run(folder: str) -> list[Figure]:
    agent, direct = in_turn(
        amount(31, smallest=1), _Measured(folder, "agent").by_agent, _Measured(folder, "direct").directly
    )
    return [
        Figure("a host that runs `true`, by its agent, from the fork to its end", agent, "ms"),
        Figure("the same without an agent of its own", direct, "ms"),
        Figure("what the agent adds", agent - direct, "ms", MILLISECONDS),
        Figure("memory that the agent shares with no process", _Measured(folder, "memory").memory(), "MB", MEGABYTES),
    ]


class _Measured:
    """A prepared job of one host."""

    def __init__(self, folder: str, name: str) -> None:
        self._store = JobStore(Path(folder) / "data")
        self._name = name
        self._count = 0

    def by_agent(self) -> float:
        fleet, folder, job = self._prepare("true")
        begun = time.monotonic()
        links = self._start(fleet, folder, job)
        _wait(links, lambda: links.hosts[0].poll() is not None)
        took = time.monotonic() - begun
        self._end(links, fleet)
        return took * 1e3

    def directly(self) -> float:
        fleet, _, _ = self._prepare("true")
        begun = time.monotonic()
        # What a job's agent did by itself: a task that stages, the host, a task that samples.
        staging = self._tasks.start(lambda: None)
        os.waitid(os.P_PID, staging.pid, os.WEXITED | os.WNOWAIT)
        (host,) = fleet.create_hosts({"algo-1": dict(os.environ)})
        host.start()
        sampling = self._tasks.start(lambda: None, stays=True)
        os.waitid(os.P_PID, host.pid, os.WEXITED | os.WNOWAIT)
        assert host.poll() == 0
        took = time.monotonic() - begun
        sampling.kill()
        for task in (staging, sampling):
            os.waitpid(task.pid, 0)
        fleet.release()
        return took * 1e3

    def memory(self) -> float:
        fleet, folder, job = self._prepare("sleep", "60")
        links = self._start(fleet, folder, job)
        _wait(links, lambda: "algo-1" in links.processes)
        rollup = Path(f"/proc/{links.processes['agent of algo-1'].pid}/smaps_rollup").read_text()
        self._end(links, fleet)
        fields = (line.split() for line in rollup.splitlines())
        return sum(int(words[1]) for words in fields if words[0] in ("Private_Clean:", "Private_Dirty:")) / 1e3

    def _prepare(self, *command: str) -> tuple[ProcessFleet, JobFolder, Job]:
        self._count += 1
        name = f"{self._name}-{self._count}"
        request = parse_request(
            {
                "TrainingJobName": name,
                "RoleArn": "arn:aws:iam::123456789012:role/training",
                "AlgorithmSpecification": {"TrainingInputMode": "File", "ContainerEntrypoint": list(command)},
                "OutputDataConfig": {"S3OutputPath": "file:///nowhere"},
                "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1, "VolumeSizeInGB": 1},
                "StoppingCondition": {"MaxRuntimeInSeconds": 60},
            }
        )
        job = Job(request, "arn", "us-east-1", sys.executable, 1.0, {}, {})
        with self._store.create(job, starting_state(name, "arn", time.time())) as (folder, _):
            folder.channels.mkdir()
        self._tasks = Tasks()
        fleet = ProcessFleet(folder, job, self._tasks, dict(os.environ))
        fleet.prepare()
        return fleet, folder, job

    def _start(self, fleet: ProcessFleet, folder: JobFolder, job: Job) -> HostLinks:
        links = HostLinks(lambda *_: None)
        links.connect(fleet.start_agents(lambda part, *pipes: HostAgent(folder, job, part, self._tasks, pipes).serve()))
        links.send("stage")
        _wait(links, lambda: links.is_staged)
        links.send("train")
        return links

    @staticmethod
    def _end(links: HostLinks, fleet: ProcessFleet) -> None:
        assert links.end(lambda seconds: _poll(links, seconds)) == []
        fleet.release()


def _wait(links: HostLinks, reached) -> None:
    while not reached():
        _poll(links, 1.0)
        assert links.failure() is None, links.failure()


def _poll(links: HostLinks, seconds: float) -> None:
    select.select(links.descriptors, [], [], seconds)
    links.poll()
