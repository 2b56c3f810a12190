"""The fault matrix as a table: what goes wrong, in which process, under which strategy, and what is to be said of it."""

from typing import NamedTuple

from faults import layouts
from faults.layouts import BETWEEN_GRAPH, COORDINATOR, MIRRORED, MPI_4, MPI_5, SINGLE

#: Seconds without output after which a job counts as hung, where a trainer is stopped.
HANG_SECONDS = 5.0
#: Seconds of silence after which a host counts as lost: few where the fault is that a host is silent. Elsewhere more
#: than a cell takes, so that a host which only waits for a busy machine is not lost.
HOST_TIMEOUT, LONG_HOST_TIMEOUT = 4.0, 120.0
#: Seconds in which every host has ended once the fault can be noticed. A cell that is later than this has failed, but
#: is waited for: it may be the machine, and then the cell is run again.
BOUND, LONG_BOUND = 5.0, 60.0
#: Every code but 0, the same on all hosts.
ANY = -1


class Fault(NamedTuple):
    name: str
    #: The job's exit code, and the first line of its failure file as a regular expression; 0 is success.
    code: int = 0
    line: str = ""
    #: What else stands in the failure file, such as a hint.
    more: str = ""
    #: Seconds after which it can be noticed.
    noticed: float = 0.0


_PROCESS = "{host}, {process}: "
#: All another host's launcher can know of a host that is gone.
_LOST = "{host}: .* lost.*"

RAISES = Fault("raises", 1, _PROCESS + "exit code 1", "this trainer gives up")
#: All other trainers ignore SIGTERM.
AMONG_THE_DEAF = Fault("raises among the deaf", 1, _PROCESS + "exit code 1")
EXITS = Fault("exits 7", 7, _PROCESS + "exit code 7")
KILLED = Fault("SIGKILL", 137, _PROCESS + "killed by SIGKILL")
STOPPED = Fault("SIGSTOP", 1, f".*no output .*for {HANG_SECONDS:g} s.*", noticed=HANG_SECONDS)
OUT_OF_MEMORY = Fault("out of memory", 137, _PROCESS + "killed by SIGKILL", "memory ran out")
MEMORY_ERROR = Fault("MemoryError", 1, _PROCESS + "exit code 1", "The host ran out of memory")
DISK_FULL = Fault("disk full", 1, _PROCESS + "exit code 1", "A disk is full")
CLOSES_STDOUT = Fault("closes stdout")
FORKS_DAEMONS = Fault("forks daemons")
#: Every trainer has left daemons that hold its output.
AMONG_DAEMONS = Fault("dies among daemons", 137, _PROCESS + "killed by SIGKILL")
IGNORES_TERM = Fault("ignores TERM")
#: A stop, for which trainers save.
TOLD_TO_STOP = Fault("SIGTERM", 143, "{host}: stopped by SIGTERM")
LAUNCHER_KILLED = Fault("SIGKILL", 1, _LOST)
LAUNCHER_STOPPED = Fault("SIGSTOP", 1, _LOST, noticed=HOST_TIMEOUT)
GONE = Fault("host gone", 1, _LOST, noticed=HOST_TIMEOUT)
CUT = Fault("network cut", 1, _LOST, noticed=HOST_TIMEOUT)

OF_TRAINERS = (
    RAISES, EXITS, KILLED, STOPPED, OUT_OF_MEMORY, MEMORY_ERROR, DISK_FULL, CLOSES_STDOUT, FORKS_DAEMONS, AMONG_DAEMONS,
    IGNORES_TERM,
)  # fmt: skip
OF_SERVERS = (KILLED, STOPPED)
OF_LAUNCHERS = (TOLD_TO_STOP, LAUNCHER_KILLED, LAUNCHER_STOPPED, GONE, CUT)


class Cell(NamedTuple):
    fault: Fault
    name: str
    process: layouts.Process
    layout: layouts.Layout

    @property
    def title(self):
        """What stands for it where all cells are listed."""
        return f"{self.layout.name}: {self.row}"

    @property
    def row(self):
        return f"{self.fault.name}, {self.name}"

    @property
    def host_timeout(self):
        """Seconds of silence after which a host of this cell counts as lost."""
        return HOST_TIMEOUT if self.loses_its_host and self.fault.noticed else LONG_HOST_TIMEOUT

    @property
    def bound(self):
        """Seconds from the fault to the end of the last host, at most."""
        return self.fault.noticed + BOUND

    @property
    def loses_its_host(self):
        """Whether a launcher cannot go on, or not be heard."""
        return self.fault.line == _LOST


#: Strategy, process, faults.
TABLE = (
    (SINGLE, "script", OF_TRAINERS), (SINGLE, "launcher", (TOLD_TO_STOP,)), (BETWEEN_GRAPH, "chief", OF_TRAINERS),
    (BETWEEN_GRAPH, "worker", (*OF_TRAINERS, AMONG_THE_DEAF)), (BETWEEN_GRAPH, "ps", OF_SERVERS),
    (BETWEEN_GRAPH, "launcher", OF_LAUNCHERS), (BETWEEN_GRAPH, "other launcher", OF_LAUNCHERS),
    (COORDINATOR, "chief", OF_TRAINERS), (COORDINATOR, "worker", OF_SERVERS), (COORDINATOR, "ps", OF_SERVERS),
    (COORDINATOR, "launcher", OF_LAUNCHERS), (COORDINATOR, "other launcher", OF_LAUNCHERS),
    (MIRRORED, "chief", OF_TRAINERS), (MIRRORED, "worker", (*OF_TRAINERS, AMONG_THE_DEAF)),
    (MIRRORED, "launcher", OF_LAUNCHERS), (MIRRORED, "other launcher", OF_LAUNCHERS),
    *(
        (layout, name, faults)
        for layout in (MPI_5, MPI_4)
        for name, faults in (
            ("rank 0", OF_TRAINERS), ("rank k", (*OF_TRAINERS, AMONG_THE_DEAF)), ("parent of rank k", (KILLED,)),
            ("mpirun", OF_SERVERS), ("daemon", OF_SERVERS), ("launcher", OF_LAUNCHERS),
            ("other launcher", OF_LAUNCHERS),
        )
    ),
)  # fmt: skip

CELLS = [Cell(fault, name, layout.processes[name], layout) for layout, name, faults in TABLE for fault in faults]
