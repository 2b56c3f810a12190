"""The processes of a plan on this host: started, signalled, waited for, killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from scriptmode_runtime._processes import children, process_tree
from scriptmode_runtime._processes.children import DAEMON, TRAINER, Child
from scriptmode_runtime._processes.process_tree import ProcessTree
from scriptmode_runtime.plan import STOP_RANKS, ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime._processes.launcher_output import LauncherOutput
    from scriptmode_runtime._processes.loop import Loop

#: Seconds to read output that other processes of an ended one still write.
_DRAIN_SECONDS = 0.3
#: Seconds for killed processes to end; the kernel needs milliseconds.
_KILL_SECONDS = 1.0


class HostProcesses:
    """The processes of one plan after the other, and the relay of their output."""

    def __init__(self, host: str, loop: Loop, output: LauncherOutput) -> None:
        self.host = host
        self.loop = loop
        self.output = output
        self.started: list[Child] = []
        #: All processes of each trainer and daemon that was stopped, also where its first process has ended.
        self._stopped: list[ProcessTree] = []
        self._stop_signal = 0

    def start(self, spec: ProcessSpec, role: str, on_end: Callable[[int], None] = lambda _status: None) -> Child:
        """Start a process; ``on_end`` is called with its exit status. Raises `UserCodeError`."""
        pid, output = children.start(spec)
        child = children.Child(spec, role, pid, self.output.relay.add(output), on_end)
        self.started.append(child)
        self.output.log_line(f"{spec.name} started, process {child.pid}")
        return child

    def running(self, *roles: str) -> list[Child]:
        """Return the processes of these roles, or of all, that have not ended."""
        return [child for child in self.started if child.running and (not roles or child.role in roles)]

    def rank_starters(self) -> list[Child]:
        """Return the running processes that start MPI ranks: ``mpirun`` and its daemons."""
        return [child for child in self.running() if child.spec.stop == STOP_RANKS]

    def lacks_ranks(self) -> bool:
        """Return whether ``mpirun`` runs without a rank: nothing of the user's program has a state to save."""
        starters = self.rank_starters()
        return bool(starters) and not any(children.mpi_ranks(starter.pid) for starter in starters)

    def reap(self) -> Iterator[Child]:
        """Reap the processes that ended; yield each once its status is set and its output is read."""
        ended = children.reap()
        for child in self.running():
            if child.pid in ended:
                child.status = ended[child.pid]
                self.output.relay.drain(child.source)
                yield child

    def signal(self, number: int, *roles: str) -> None:
        """Send a signal to the running processes of these roles."""
        for child in self.running(*roles):
            child.signal(number)

    def stop_trainers(self, number: int) -> None:
        """Send a signal to trainers and daemons; `have_ended` then also waits for what they started."""
        stopped = [child for child in self.started if child.role in (TRAINER, DAEMON)]
        self._stopped = [ProcessTree(child.pid, has_ended=not child.running) for child in stopped]
        self._stop_signal = number
        for child, tree in zip(stopped, self._stopped):
            if child.running or tree.is_alive():
                child.signal(number)

    def trainers_have_ended(self) -> bool:
        """Return whether trainers and daemons have ended, with all processes of those that were stopped."""
        if self.running(TRAINER, DAEMON):
            return False
        self._stopped = [tree for tree in self._stopped if tree.is_alive()]
        for tree in self._stopped:
            tree.signal_orphans(self._stop_signal)
        return not self._stopped

    def have_ended(self) -> bool:
        """Return whether all processes have ended."""
        return not self.running() and self.trainers_have_ended()

    def stopped_pids(self) -> list[int]:
        """Return the processes of stopped trainers and daemons that are left."""
        return sorted({pid for tree in self._stopped for pid in tree.pids()})

    def kill(self) -> None:
        """Kill all processes that were started and still run."""
        for child in self.running():
            child.kill()
        for tree in self._stopped:
            process_tree.kill_all(tree.pids())

    def reap_killed(self) -> None:
        """Wait until the killed processes have ended, with a deadline; the loop's signals `reap` them."""
        self.loop.until(lambda: not self.running(), self.loop.clock() + _KILL_SECONDS)

    def drain(self, *, log_killed: bool) -> None:
        """Relay the remaining output of ended processes, kill their orphaned processes, and forget them."""
        loop, relay = self.loop, self.output.relay
        loop.until(lambda: relay.idle, loop.clock() + _DRAIN_SECONDS)
        self.output.flush(relay.pending)
        left = children.describe_killed(children.orphans()) if log_killed else ""
        if left:
            self.output.log_line(left)
        deadline = loop.clock() + _KILL_SECONDS
        while loop.clock() < deadline and children.kill_orphans():
            loop.once(loop.clock() + 0.01)
        loop.until(lambda: relay.idle, loop.clock() + _DRAIN_SECONDS)
        self.started, self._stopped = [], []
