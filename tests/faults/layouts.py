"""How the hosts of a job train together, and which processes each way has: where they run, what reports call them."""

import re
import sys
from typing import NamedTuple

from faults import processes


class Process(NamedTuple):
    #: Position of its host.
    host: int
    #: As a failure file names it.
    label: str
    #: What a trainer calls itself; "" for another process.
    trainer: str = ""
    #: For a program of someone else's: what its command line matches.
    program: str = ""
    #: The rank that program is part of.
    rank: str = ""
    #: For a server: the task of TF_CONFIG it serves.
    task: str = ""

    def is_it(self, pid):
        words, variables = processes.words(pid), processes.variables(pid)
        if self.trainer:
            rank = variables.get("OMPI_COMM_WORLD_RANK")
            name = f"rank {rank}" if rank else processes.task(pid) or "script"
            return "train.py" in words and name == self.trainer
        if self.task:
            return "scriptmode_runtime.tensorflow.server" in words and processes.task(pid) == self.task
        if self.rank and variables.get("OMPI_COMM_WORLD_RANK") != self.rank:
            return False
        return bool(self.program and re.match(self.program, " ".join(words)))


class Layout(NamedTuple):
    name: str
    hosts: int
    hyperparameters: dict[str, object]
    processes: dict[str, Process]
    #: Every trainer, and the position of the host whose log shows its words.
    trainers: dict[str, int]
    python: str = sys.executable


LAUNCHER = Process(0, "launcher")
OTHER_LAUNCHER = Process(1, "launcher")
_LAUNCHERS = {"launcher": LAUNCHER, "other launcher": OTHER_LAUNCHER}
_PARAMETER_SERVER = {"sagemaker_parameter_server_enabled": True}

SINGLE = Layout("single", 1, {}, {"script": Process(0, "script", "script"), "launcher": LAUNCHER}, {"script": 0})
BETWEEN_GRAPH = Layout(
    "ps",
    2,
    _PARAMETER_SERVER,
    {
        "chief": Process(0, "master", "master 0"), "worker": Process(1, "worker", "worker 0"),
        "ps": Process(1, "ps", task="ps 1"), **_LAUNCHERS,
    },
    {"master 0": 0, "worker 0": 1},
)  # fmt: skip
COORDINATOR = Layout(
    "coordinator",
    2,
    {**_PARAMETER_SERVER, "sagemaker_parameter_server_coordinator": True},
    {
        "chief": Process(0, "chief", "chief 0"), "worker": Process(1, "worker", task="worker 1"),
        "ps": Process(1, "ps", task="ps 1"), **_LAUNCHERS,
    },
    {"chief 0": 0},
)  # fmt: skip
MIRRORED = Layout(
    "mirrored",
    3,
    {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    {"chief": Process(0, "worker", "worker 0"), "worker": Process(2, "worker", "worker 2"), **_LAUNCHERS},
    {"worker 0": 0, "worker 1": 1, "worker 2": 2},
)


def _mpi(major, python):
    """MPI over two hosts, two ranks each; ``python`` is the interpreter whose mpirun is Open MPI ``major``."""
    return Layout(
        f"mpi {major}",
        2,
        {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2},
        {
            "rank 0": Process(0, "rank 0", "rank 0"),
            "rank k": Process(1, "rank 3", "rank 3"),
            "parent of rank k": Process(1, "rank 3", program=r"\S+ -m scriptmode_runtime\.rank", rank="3"),
            "mpirun": Process(0, "mpirun", program=r"\S*/(mpirun|prterun|orterun)\b"),
            "daemon": Process(1, "daemon", program=r"\S*\b(prted|orted)\b"),
            **_LAUNCHERS,
        },
        {f"rank {rank}": 0 for rank in range(4)},
        python,
    )


#: The system's interpreter has no Open MPI beside itself: it takes the system's, which is Open MPI 4.
MPI_5, MPI_4 = _mpi(5, sys.executable), _mpi(4, "/usr/bin/python3")
