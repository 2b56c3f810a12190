"""A container that is killed, paused or cut off, under every strategy: the job fails, says which, and nothing is left.

Each run has every pair of a strategy, a fault and a target; ``--thorough`` has every combination.
"""

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from containers.conftest import docker
from containers.estimator_jobs import ContainerJob
from covering import covering
from fakes.promptness import soon
from faults.cells import PROGRAMS
from faults.layouts import BETWEEN_GRAPH, COORDINATOR, MIRRORED, MPI_5_PEERS, MPI_5_SSH
from processes.launchers import until

from scriptmode import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode_runtime.contract import DEFAULT_PORTS

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

#: Seconds of silence after which a host counts as lost: few where the fault is silence, else more than a job takes.
HOST_TIMEOUT, LONG_HOST_TIMEOUT = 4.0, 120.0
#: Seconds from when a fault can be noticed to the end of the job, with other jobs running; and how long it is waited for.
BOUND, LONG_BOUND = 10.0, 90.0
AT_ONCE = 4
DISTRIBUTIONS = {
    BETWEEN_GRAPH.name: (BETWEEN_GRAPH, ParameterServer()),
    COORDINATOR.name: (COORDINATOR, ParameterServer(coordinator=True)),
    MIRRORED.name: (MIRRORED, MultiWorkerMirrored()),
    "mpi": (MPI_5_PEERS, MPI(processes_per_host=2)),
    "mpi over ssh": (MPI_5_SSH, MPI(processes_per_host=2)),
}


class Fault(NamedTuple):
    """What happens to a container."""

    #: Docker's words, before the names of what they are for.
    words: tuple[str, ...]
    #: The FailureReason's first line as a regular expression.
    reason: str
    #: Seconds after which it can be noticed.
    noticed: float = 0.0


FAULTS = {
    "killed": Fault(
        ("kill",), "AlgorithmError: {host}: (the host's launcher was killed by SIGKILL|its launcher was lost).*"
    ),
    "paused": Fault(("pause",), "AlgorithmError: {host}: its launcher was lost.*", HOST_TIMEOUT),
    "cut off": Fault(
        ("network", "disconnect", "--force"), "InternalServerError: {host}: disconnected from .*", HOST_TIMEOUT
    ),
}
TARGETS = {"first host": 0, "another host": 1}


class FaultyJob:
    """A job of trainers without TensorFlow, and the container that something happens to."""

    def __init__(self, image, folder, layout, fault, target):
        self._layout, distribution = DISTRIBUTIONS[layout]
        self._fault = FAULTS[fault]
        self.target = f"algo-{TARGETS[target] + 1}"
        self._hosts = [f"algo-{number + 1}" for number in range(self._layout.hosts)]
        host_timeout = HOST_TIMEOUT if self._fault.noticed else LONG_HOST_TIMEOUT
        variables = {"SCRIPTMODE_HOST_TIMEOUT_SECONDS": f"{host_timeout:g}", "SCRIPTMODE_STOP_GRACE_SECONDS": "10"}
        self._job = ContainerJob(
            folder,
            entry_point="trainer.py",
            source_dir=str(PROGRAMS),
            image_uri=image,
            instance_count=self._layout.hosts,
            distribution=distribution,
            environment={**variables, **self._layout.variables},
            hyperparameters={"fault": "none", "where": "nobody"},
        )

    def await_training(self):
        """Wait until every trainer trains and the hosts know each other: until then no host notices a missing one."""
        wanted = [f"training as {trainer}" for trainer in self._layout.trainers]

        def training():
            assert not self._job.job.ended, self._job.job.failure_reason
            log = self._job.log()
            return all(text in log for text in wanted)

        until(training, 200, self._tell)
        asked = docker("inspect", "--format", "{{.State.Pid}}", self._job.container(self._hosts[0]))
        until(lambda: joined(asked.stdout.strip()) == len(self._hosts) - 1, LONG_BOUND, self._tell)

    def inflict(self):
        """Do it; return when it was done."""
        words = self._fault.words
        network = [self._job.network()] if words[0] == "network" else []
        words = [*words, *network, self._job.container(self.target)]
        # The kernel does not freeze every busy container at the first attempt.
        until(lambda: docker(*words).returncode == 0, LONG_BOUND, lambda: docker(*words).stdout)
        return time.monotonic()

    def end(self, since):
        """Wait for the end of the job; return the seconds since then."""
        until(lambda: self._job.job.ended, LONG_BOUND, self._tell)
        return time.monotonic() - since

    def check(self):
        """Assert what is said and that nothing is left or lost."""
        reason = self._job.job.failure_reason
        assert self._job.job.status == "Failed"
        assert re.fullmatch(self._fault.reason.format(host=self.target), reason.partition("\n")[0]), reason
        assert self._job.left() == []
        kept = {path.name for path in self._job.folder.hosts.glob("*/model/before the fault*")}
        assert kept == {f"before the fault, {trainer}" for trainer in self._layout.trainers}

    def close(self):
        """End it, whatever became of it."""
        self._job.close()

    def _tell(self):
        return f"{self._job.job.describe()}\n{self._job.log()[-3000:]}"


def joined(pid):
    """Count the hosts that are connected to a host's launcher, as the kernel sees the network of a process there."""
    tables = [Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    here, established = f":{DEFAULT_PORTS['peers']:04X}", "01"
    rows = [row.split() for table in tables for row in table]
    return sum(row[1].endswith(here) and row[3] == established for row in rows)


@pytest.fixture(scope="module")
def outcomes(request, built, tmp_path_factory):
    """Run the cells that were selected, a few at once, because most of them wait most of the time."""
    image, folder = built("2.15.1"), tmp_path_factory.mktemp("data")

    def run(cell):
        job = FaultyJob(image, folder, *cell)
        try:
            job.await_training()
            seconds = job.end(job.inflict())
            job.check()
        finally:
            job.close()
        return seconds

    asked = [item.callspec.params for item in request.session.items if item.module is request.module]
    cells = [(each["layout"], each["fault"], each["target"]) for each in asked]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = {cell: pool.submit(run, cell) for cell in cells}
        # A cell that is asked for again, because it was late, is run again.
        yield lambda *cell: (results.pop(cell, None) or pool.submit(run, cell)).result()
        pool.shutdown(cancel_futures=True)


CELLS = list(itertools.product(DISTRIBUTIONS, FAULTS, TARGETS))
EACH_RUN = covering(CELLS, lambda cell: set(itertools.combinations(cell, 2)))


@pytest.mark.prompt
@pytest.mark.parametrize(
    ("layout", "fault", "target"),
    [pytest.param(*cell, marks=[] if cell in EACH_RUN else [pytest.mark.thorough]) for cell in CELLS],
)
def test_a_container_fails_the_job_and_leaves_nothing(layout, fault, target, outcomes, record_property):
    seconds = outcomes(layout, fault, target)
    record_property("seconds", seconds)
    soon(seconds, FAULTS[fault].noticed + BOUND)
    print(f"{layout}, {target} {fault}: Failed, everything removed, after {seconds:.2f} s")
