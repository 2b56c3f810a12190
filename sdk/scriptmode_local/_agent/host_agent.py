"""A host's agent: stages the inputs of the hosts of one machine, starts the hosts, serves and ends them.

It does what `host_messages` describes, and owns nothing of the job's state. On this machine it is a fork of the job's
agent, with which it dies. Where the hosts are elsewhere the engine starts it there, once for each host:

``python -m scriptmode_local._agent.host_agent <job folder> <host>``: commands come from standard input, events
go to standard output, warnings and errors to standard error. It ends after the command ``end`` or the end of its input,
never by SIGTERM, which a scheduler sends to all processes of a host.

It has no threads, because it forks.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.job_failure import Failure
from scriptmode.errors import DataError, PlatformError
from scriptmode_local._agent import host_messages, log_stream, supervision
from scriptmode_local._agent.progress import ProgressRecorder, sum_by_channel
from scriptmode_local._agent.usage import UsageSampler
from scriptmode_local._data import mounts
from scriptmode_local._data.stores import Stores
from scriptmode_local._hosts.engine import find_engine
from scriptmode_local._inputs import file_mode, mounted_channels, pipe_mode
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._store.heartbeat import LONGEST_WORK_SECONDS
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system import full_disk
from scriptmode_local._system.directory_lock import above_streams
from scriptmode_local._system.forked_tasks import Children, ForkedTask, Tasks
from scriptmode_runtime import contract
from scriptmode_runtime._processes import forks, proc, system

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import ChannelProgress
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job


class HostAgent:
    """Agent of the hosts of one machine; ``commands`` and ``events`` are descriptors of pipes."""

    def __init__(self, folder: JobFolder, job: Job, fleet: Fleet, tasks: Tasks, pipes: tuple[int, int]) -> None:
        self._folder = folder
        self._job = job
        self._fleet = fleet
        self._tasks = tasks
        self._commands = host_messages.MessageReader(pipes[0], "do")
        self._events = pipes[1]
        self._children = Children()
        #: The data directory, which names the disk of the job's directory in messages.
        self._disk = folder.path.parent.parent
        self._sandboxes = list(fleet.sandboxes.values())
        self._spool = fleet.staging.folder / "spool"
        self._stores = Stores()
        self._producers = pipe_mode.PipeProducers(job.request, self._sandboxes, self._stores, self._spool, tasks)
        folders = None if fleet.staging.mounts_file_systems else job.file_systems
        self._mounts = mounted_channels.ChannelMounts(job.request, self._sandboxes, folders, tasks)
        self._staging_progress = file_mode.StagingProgress(job.request)
        self._staging: ForkedTask | None = None
        #: The hosts that are not started yet, in reverse order; of those that were started the process ID of the child
        #: that ends with each; and of these the ones that have not ended.
        self._unstarted: list[str] = []
        self._pids: dict[str, int] = {}
        self._running: list[str] = []
        self._has_failed = False
        #: The exit code of the first host that failed; 0 without one.
        self.exit_code = 0
        self._is_sending = False
        #: When the hosts have used up their time, by the monotonic clock; after that they get SIGTERM, then SIGKILL.
        self._deadline = float("inf")
        #: The hosts that this process ended because of it.
        self._overdue: set[str] = set()
        #: The last time when commands were read.
        self._worked = time.monotonic()
        self._progress = ProgressRecorder(self._read_progress, self._send_progress)

    def serve(self) -> None:
        """Run commands until ``end``, or until the job's agent is gone; then stop everything."""
        signal.signal(signal.SIGALRM, self._on_timer)
        signal.setitimer(signal.ITIMER_REAL, host_messages.ALIVE_SECONDS, host_messages.ALIVE_SECONDS)
        try:
            while self._run_commands():
                # One at a time: a stop holds for the next one.
                self._start_next()
                self._report()
                self._end_overdue_hosts()
                seconds = supervision.WATCH_SECONDS if self._running else supervision.POLL_SECONDS
                self._children.wait(0 if self._unstarted else seconds, [self._commands.descriptor])
        except BrokenPipeError:
            pass
        except Exception as error:  # noqa: BLE001 - the job must end with a reason whatever happens
            traceback.print_exc()
            self._fail(*supervision.describe_error(error, self._folder))
        problems = self._end()
        misplaced = self._fleet.release_machine()
        with suppress(BrokenPipeError):
            self._send("finished", problems=problems, misplaced=str(misplaced or ""))

    def _run_commands(self) -> bool:
        """Run the commands that have arrived; return whether more can come."""
        self._worked = time.monotonic()
        for command in self._commands.read():
            what = command["do"]
            if what == "end":
                return False
            if what == "stage":
                self._stage()
            elif what == "train":
                self._deadline = time.monotonic() + command.get("left", float("inf")) + supervision.OVERDUE_SECONDS
                self._unstarted = list(self._fleet.sandboxes)[::-1]
            elif (name := command["host"]) in self._running:
                self._fleet.signal_host(name, signal.SIGTERM if what == "terminate" else signal.SIGKILL)
            elif name in self._unstarted:
                self._unstarted.remove(name)
                self._send("ended", host=name, code=-signal.SIGTERM, machine_failure="")
        return not self._commands.is_closed

    def _stage(self) -> None:
        """Start the mounts, and the task that copies File mode channels."""
        if not self._job.request.channels:
            self._send("staged")
            return
        try:
            with full_disk.translate_full_disk_errors(self._disk):
                self._spool.mkdir(parents=True, exist_ok=True)
                for uri in self._job.request.streamed_uris:
                    self._stores.prepare(uri)
                copied = self._mounts.begin(self._stores, self._spool, self._log, self._fleet.staging.mount_obstacle)
        except (DataError, OSError) as error:
            self._fail_download(error)
            return

        def copy() -> None:
            with full_disk.translate_full_disk_errors(self._disk):
                self._producers.check()
                area, progress = self._fleet.staging, self._staging_progress
                file_mode.stage_channels(
                    self._job.request, self._sandboxes, self._stores, area, progress=progress, modes=copied
                )

        self._staging = self._tasks.start(copy, "the download")

    def _start_next(self) -> None:
        """Start the next host, if one is not started; send their processes, and sample them, once all are."""
        if not self._unstarted:
            return
        try:
            with full_disk.translate_full_disk_errors(self._disk):
                if not self._pids:
                    self._producers.create_fifos()
                name = self._unstarted.pop()
                self._pids[name] = self._fleet.start_host(name)
                self._running.append(name)
                if self._unstarted:
                    return
                self._producers.start()
        except (DataError, OSError) as error:
            self._unstarted = []
            command = (*self._job.request.algorithm.container_entry_point, self._job.python)[0]
            self._fail("ClientError", Failure(f"the hosts cannot be started with {command!r}: {error}"))
            return
        first = self._sandboxes[0].host
        sampler = UsageSampler(self._pids, self._fleet.find_process, self._folder.usage_file(first))
        self._tasks.start(sampler.run, "the sampler of CPU and memory", is_endless=True)
        pids = {f"agent of {first}": os.getpid(), **self._pids}
        identities = {name: proc.identify(pid) for name, pid in pids.items()}
        self._send("started", processes={name: identity._asdict() for name, identity in identities.items() if identity})

    def _report(self) -> None:
        """Send what happened since the last call. A host that ends may have lost an input, which is the cause then."""
        codes = {name: self._fleet.poll_host(name) for name in self._running}
        for line in self._tasks.watch():
            self._log(self._sandboxes[0].host, line)
        if self._staging or self._running:
            if failure := self._producers.failure() or self._mounts.failure():
                self._fail("ClientError", failure)
            self._progress.record(now=any(code is not None for code in codes.values()))
        self._report_staging()
        for name, code in codes.items():
            if code is not None:
                self._report_end(name, code)
        if self._running:
            pids = [self._pids[name] for name in self._running]
            self._children.reap_strays([*pids, *self._tasks.pids])

    def _report_staging(self) -> None:
        """Send that the inputs are there, or why they are not."""
        if not self._staging or not self._staging.poll() or self._has_failed:
            return
        if self._staging.error:
            self._fail_download(self._staging.error)
        elif self._mounts.is_ready_or_failed():
            self._staging = None
            self._progress.record(now=True)
            self._send("staged")

    def _report_end(self, name: str, code: int) -> None:
        self.exit_code = self.exit_code or (code if code >= 0 else 128 - code)
        self._running.remove(name)
        overdue = {"overdue": True} if name in self._overdue else {}
        self._send("ended", host=name, code=code, machine_failure=self._fleet.explain_end(name, code), **overdue)

    def _read_progress(self) -> list[ChannelProgress]:
        parts = (self._staging_progress, self._producers)
        return sum_by_channel(channel for part in parts for channel in part.progress())

    def _send_progress(self, progress: list[ChannelProgress]) -> bool:
        self._send("progress", channels=[asdict(channel) for channel in progress])
        return True

    def _end(self) -> list[str]:
        """Stop every process below this one and remove its mounts; return what could not be ended."""
        problems = self._mounts.end()
        if not self._children.kill_all():
            problems.append("some processes of the job could not be killed")
        for sandbox in self._sandboxes:
            try:
                # Read-only file systems, and what a child mounted that was killed meanwhile.
                mounts.detach(sandbox.base)
            except DataError as error:  # noqa: PERF203 - the other mounts are removed nevertheless
                problems.append(str(error))
        return problems

    def _fail_download(self, error: object) -> None:
        self._fail("ClientError", supervision.split_cause(f"Data download failed: {error}"))

    def _fail(self, kind: str, failure: Failure) -> None:
        """Fail the job, for the first reason that there is."""
        if not self._has_failed:
            self._has_failed = True
            with suppress(BrokenPipeError):
                self._send("failed", kind=kind, failure=asdict(failure))

    def _log(self, host: str, text: str) -> None:
        self._send("log", host=host, text=text)

    def _send(self, event: str, **fields: Any) -> None:
        self._is_sending = True
        try:
            host_messages.send(self._events, event=event, **fields)
        finally:
            self._is_sending = False

    def _end_overdue_hosts(self) -> None:
        """Stop hosts that the job's agent should have ended by now: it is stopped, or hangs."""
        overdue = time.monotonic() - self._deadline
        if overdue > 0:
            is_grace_over = overdue > self._job.stop_grace + contract.STOP_MARGIN
            for name in list(self._running):
                if is_grace_over:
                    self._fleet.signal_host(name, signal.SIGKILL)
                elif name not in self._overdue:
                    self._overdue.add(name)
                    self._fleet.signal_host(name, signal.SIGTERM)

    def _on_timer(self, *_: object) -> None:
        """Send ``alive``; a signal calls it. Where an event waits for a reader that is stopped, end overdue hosts."""
        if self._is_sending:
            self._end_overdue_hosts()
        elif time.monotonic() - self._worked < LONGEST_WORK_SECONDS:
            with suppress(BrokenPipeError):
                self._send("alive")


def main(arguments: list[str]) -> int:
    """Run the agent of one host of the given job directory; return the host's exit code, which a scheduler records."""
    # Until `Children` handles it: the job's agent, which may start later, ends its hosts.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    folder, host = JobFolder(Path(arguments[0])), arguments[1]
    commands, events = above_streams(os.dup(0)), above_streams(os.dup(1))
    # What a library prints must not be read as an event, and no child may read the commands.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stderr = log_stream.open_log_stream(2)
    os.chdir("/")
    tasks = Tasks(commands, events)
    try:
        # What follows may take long on a busy file server.
        host_messages.send(events, event="alive")
        job = folder.read_job()
        engine = find_engine(job.request.resources.host_kind)
        # The job's agent, which may start later, writes the host's files before its first command.
        while not select.select([commands], [], [], host_messages.ALIVE_SECONDS)[0]:
            host_messages.send(events, event="alive")
        job = job.with_hosts(len(Sandbox(host, folder.host(host)).read_hosts()))
        fleet = engine.create_fleet(folder, job, tasks, os.environ, host)
    except (PlatformError, OSError, ValueError, LookupError) as error:
        failure = Failure(f"{host} cannot be prepared: {error}", host=host)
        with suppress(BrokenPipeError):
            host_messages.send(events, event="failed", kind="ClientError", failure=asdict(failure))
            host_messages.send(events, event="finished", problems=[], misplaced="")
        return 1
    agent = HostAgent(folder, job, fleet, tasks, (commands, events))
    agent.serve()
    return agent.exit_code


if __name__ == "__main__":
    forks.restart_without_threads("scriptmode_local._agent.host_agent")
    code = main(sys.argv[1:])
    if code - 128 in (signal.SIGABRT, signal.SIGBUS, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        # A scheduler shows the signal.
        system.end_by_signal(code - 128)
    sys.exit(code)
