"""The detached process that owns one running job, from Starting to Completed, Failed or Stopped.

``python -m scriptmode.platforms.local.agent <job folder> <lock>``: the descriptor ``lock`` is the job's lock, held.
The first process ends with 0 when the agent is up; the agent itself goes on in the background.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.data import fuse_mounts
from scriptmode.data.stores import Stores
from scriptmode.errors import ContainerError, DataError
from scriptmode.platforms import requested_hosts
from scriptmode.platforms.local.agent import cleanup, log_stream, progress, supervision
from scriptmode.platforms.local.agent.supervision import Outcome, SupervisionHooks
from scriptmode.platforms.local.hosts import fleet, job_variables
from scriptmode.platforms.local.inputs import file_mode, mounted_channels, pipe_mode
from scriptmode.platforms.local.outputs import artifacts, checkpoints
from scriptmode.platforms.local.store import heartbeat, logs
from scriptmode.platforms.local.store.description import algorithm_error, max_runtime
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.platforms.local.store.state import MESSAGES
from scriptmode.platforms.local.store.state_recorder import StateRecorder
from scriptmode.platforms.local.system import full_disk, process_tree
from scriptmode.platforms.local.system.durable import sync_directory, sync_file
from scriptmode.platforms.local.system.forked_tasks import Children, Chore, exit_words
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.platforms.local.hosts import Host
    from scriptmode.platforms.opt_ml import Sandbox

#: Where the failure file is missing, this much of the host's log stands in for it.
LOG_TAIL_LINES = 12
LOG_TAIL_CHARACTERS = 700
#: How often a long download says how far it is.
PROGRESS_SECONDS = 5.0


class _JobDeletedError(Exception):
    """The job's folder was removed: the job is deleted."""


class Agent:
    """One running job."""

    def __init__(self, folder: JobFolder, lock: int, inherited: Mapping[str, str]) -> None:
        self._folder = folder
        self._lock = lock
        self._job = folder.read_job()
        self._request = self._job.request
        self._state = folder.read_state()
        self._children = Children()
        #: The directory by which the disk of the job's folder is named.
        self._disk = folder.path.parent.parent
        self._states = StateRecorder(folder, self._log)
        self._fleet = fleet.of(folder, self._job, lock, inherited)
        self._sandboxes = self._fleet.sandboxes
        self._hosts: Sequence[Host] = ()
        self._next_progress = time.monotonic() + PROGRESS_SECONDS
        self._heartbeat = heartbeat.Heartbeat(lock)
        feeds = pipe_mode.feeds_of(self._request, list(self._sandboxes.values()))
        self._spool = folder.channels / "spool"
        self._checkpoints: checkpoints.Keeper | None = None
        if "CheckpointConfig" in self._request:
            record = folder.channels / "checkpoints.json"
            self._checkpoints = checkpoints.Keeper(self._request, list(self._sandboxes.values()), record)
        self._stores = Stores()
        self._feeding = pipe_mode.Feeding(feeds, self._stores, self._spool, lock)
        folders = None if self._fleet.has_file_systems else self._job.file_systems
        self._staged = progress.StagingProgress(self._request)
        self._progress = progress.ProgressRecorder(
            folder, lambda: [*self._staged.progress(), *self._feeding.progress()]
        )
        self._mounting = mounted_channels.Mounting(self._request, list(self._sandboxes.values()), folders, lock)

    def run(self) -> None:
        """Take the job to its end."""
        self._record_processes()
        outcome = self._download() or self._fetch()
        if outcome is None:
            self._progress.record(now=True)
            outcome = self._train()
            self._progress.record(now=True)
            for name, text in self._feeding.unread() if outcome.secondary == "Completed" else ():
                self._log_to_host(name, text)
        self._end_processes()
        if self._hosts:
            outcome = self._upload(outcome)
        self._end(outcome)

    def is_deleted(self) -> bool:
        """Say whether somebody deleted the job by removing its folder."""
        return self._folder.is_deleted(self._lock)

    def abandon(self) -> None:
        """End everything without a word: there is nobody to tell and nowhere to tell it."""
        supervision.end_hosts(
            self._hosts, supervision.FAILURE_GRACE_SECONDS, replace(self._hooks(), wait=self._children.wait)
        )
        self._end_processes()
        self._fleet.release()
        self._folder.remove_rest()

    def fail(self, error: Exception) -> None:
        """End the job, whatever is going on, for an error of the agent's own; one that has ended stays as it is."""
        if self._state.ended:
            self._log("warning: the job had ended before this error, which changes nothing about it")
            return
        try:
            self._end_processes()
        except Exception:  # noqa: BLE001 - nothing keeps the job from ending
            traceback.print_exc()
        reason = f"InternalServerError: {type(error).__name__}: {error}; see {self._folder.agent_log}"
        if full_disk.is_full(error):
            reason = f"ClientError: {full_disk.described(error, self._disk)}"
        self._end(Outcome("Failed", reason))

    def _download(self) -> Outcome | None:
        """Prepare the hosts' sandboxes and inputs; give an outcome only when the job ends with that."""
        try:
            with full_disk.reported(self._disk), self._heartbeat.beating():
                self._spool.mkdir(parents=True, exist_ok=True)
                self._fleet.prepare()
        except (ContainerError, DataError, OSError) as error:
            return Outcome("Failed", f"ClientError: the hosts cannot be prepared: {error}")
        self._enter("Downloading")
        try:
            with full_disk.reported(self._disk):
                chore = self._begin_staging()
        except (DataError, OSError) as error:
            return Outcome("Failed", f"ClientError: Data download failed: {error}")
        while not chore.poll() or not (chore.error or self._mounting.is_settled() or self._stop_requested()):
            if self._stop_requested():
                self._enter("Stopping")
            if self._stop_requested() or self._mounting.broken():
                chore.kill()
            self._record_progress()
            self._wait(supervision.POLL_SECONDS)
        if self._stop_requested():
            return Outcome("Stopped")
        if failure := self._mounting.broken():
            return Outcome("Failed", failure)
        return Outcome("Failed", f"ClientError: Data download failed: {chore.error}") if chore.error else None

    def _fetch(self) -> Outcome | None:
        """Get what the hosts are made of, where it is not here; give an outcome only when the job ends with that."""
        try:
            if self._fleet.is_here():
                return None
        except ContainerError as error:
            return Outcome("Failed", f"ClientError: {error}")
        self._enter("DownloadingTrainingImage")
        chore = Chore(self._fleet.fetch, self._lock)
        while not chore.poll():
            if self._stop_requested():
                self._enter("Stopping")
                chore.kill()
            self._wait(supervision.POLL_SECONDS)
        if self._stop_requested():
            return Outcome("Stopped")
        return Outcome("Failed", f"ClientError: {chore.error}") if chore.error else None

    def _begin_staging(self) -> Chore:
        """Begin the mounts, and have what is copied copied."""
        sandboxes = list(self._sandboxes.values())
        for uri in requested_hosts.served_uris(self._request):
            self._stores.prepare(uri)
        copied = self._mounting.begin(self._stores, self._spool, self._log_to_host, self._fleet.why_no_mounts)

        def stage() -> None:
            with full_disk.reported(self._disk):
                self._feeding.check()
                folder, report = self._folder.channels, self._staged.report
                file_mode.stage(self._request, sandboxes, self._stores, folder, report=report, modes=copied)
                if self._checkpoints:
                    self._checkpoints.restore()

        return Chore(stage, self._lock)

    def _train(self) -> Outcome:
        self._enter("Training")
        environments = {name: self._environment(sandbox) for name, sandbox in self._sandboxes.items()}
        self._hosts = self._fleet.hosts(environments)
        try:
            with full_disk.reported(self._disk), self._heartbeat.beating():
                self._feeding.make()
                for host in self._hosts:
                    host.start()
                self._feeding.start()
        except (DataError, OSError) as error:
            return Outcome("Failed", f"ClientError: the hosts cannot be started with {self._job.python!r}: {error}")
        if self._checkpoints:
            Chore(self._checkpoints.keep_on, self._lock)
        self._record_processes()
        # The script has the grace; `train` then kills, reaps and reports.
        grace = self._job.stop_grace + contract.STOP_MARGIN
        return supervision.supervise(self._hosts, max_runtime(self._request), grace, self._hooks())

    def _hooks(self) -> SupervisionHooks:
        return SupervisionHooks(
            wait=self._wait_for_hosts,
            stop_requested=self._stop_requested,
            on_stopping=lambda said: self._enter("Stopping", said),
            describe_failure=self._describe_failure,
            input_failure=lambda: self._feeding.broken() or self._mounting.broken(),
        )

    def _environment(self, sandbox: Sandbox) -> dict[str, str]:
        return job_variables.added(self._fleet.environment(sandbox), self._job)

    def _describe_failure(self, name: str, code: int) -> str:
        sandbox = self._sandboxes[name]
        trouble = next(host.trouble for host in self._hosts if host.name == name)
        if trouble:
            return f"ClientError: {name}: {trouble}"
        if cut_off := self._fleet.cut_off():
            return f"InternalServerError: {cut_off}"
        exit_code = code if code >= 0 else 128 - code
        said = sandbox.read_failure()
        if not said:
            ended = f"ended with {exit_words(code)}" if code >= 0 else f"was killed by {exit_words(code)}"
            tail = logs.last_lines(self._folder.log(name), LOG_TAIL_LINES, LOG_TAIL_CHARACTERS)
            if not tail and not full_disk.has_space(self._disk):
                full = f"{full_disk.explain(self._disk)}, so nothing more is known; free some space"
                return f"ClientError: {name}: the host's launcher {ended}; {full}, exit code: {exit_code}"
            said = f"{name}: the host's launcher {ended}" + (f"; its log ends with\n{tail}" if tail else "")
        return algorithm_error(said, exit_code)

    def _upload(self, outcome: Outcome) -> Outcome:
        """Deliver the artifacts; a delivery that fails fails a job that had not failed yet."""
        if outcome.secondary == "Completed":
            self._enter("Uploading")
        with_model = outcome.secondary != "Failed"
        sandboxes = list(self._sandboxes.values())

        def publish() -> str:
            if outcome.secondary == "Completed" and artifacts.without_model(sandboxes):
                self._log_to_user(self._fleet.no_model)
            with full_disk.reported(self._disk):
                uri = artifacts.publish(
                    self._request, sandboxes, self._folder.output, with_model=with_model, say=self._log_to_user
                )
                if self._checkpoints:
                    self._checkpoints.finish(self._log_to_user)
                return uri

        chore = Chore(publish, self._lock)
        while not chore.poll():
            self._wait(supervision.POLL_SECONDS)
        if chore.error:
            self._log_to_user(f"artifacts were not delivered: {chore.error}")
            if with_model:
                kept = f"what the hosts left is kept in {self._folder.output} and {self._folder.hosts}"
                return Outcome("Failed", f"ClientError: Artifact upload failed: {chore.error}; {kept}")
        self._state = replace(self._state, artifacts=str(chore.value or ""))
        return outcome

    def _end(self, outcome: Outcome) -> None:
        """Record how the job ended, which nothing changes any more, then remove what it does not need any more."""
        self._fleet.release()
        self._sync_logs()
        self._enter(outcome.secondary, reason=outcome.reason)
        for warning in cleanup.remove_unneeded_files(self._folder, failed=outcome.secondary == "Failed"):
            self._log(warning)

    def _sync_logs(self) -> None:
        """Make the hosts' logs durable: a job's last state is not to outlive them."""
        of_hosts = [self._folder.log(name) for name in self._sandboxes]
        with self._heartbeat.beating():
            for log in of_hosts:
                # One that something else has replaced keeps the others from nothing.
                with suppress(OSError):
                    sync_file(log)
            with suppress(OSError):
                sync_directory(of_hosts[0].parent)

    def _enter(self, secondary: str, message: str = "", reason: str = "") -> None:
        if self.is_deleted():
            raise _JobDeletedError
        self._heartbeat.beat()
        before, self._state = (
            self._state,
            self._state.with_status(secondary, time.time(), message=message, reason=reason),
        )
        if self._state.ended:
            self._states.record_last(self._state, self._wait)
        elif self._state is not before:
            self._states.record(self._state)

    def _record_progress(self) -> None:
        """Say how much of a channel is here, now and then."""
        now = time.monotonic()
        here = self._staged.current()
        if self._state.secondary == "Downloading" and here and here.done and now > self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            of = f"{here.done / 1e9:.1f} of {(here.total or 0) / 1e9:.1f} GB"
            said = f"{MESSAGES['Downloading']}: channel {here.channel!r}, {of}"
            self._state = self._state.with_message(said, time.time())
            self._states.record(self._state)

    def _stop_requested(self) -> bool:
        return self._children.terminated or self._folder.stop_requested() is not None

    def _wait(self, seconds: float) -> None:
        self._children.wait(seconds)
        if self.is_deleted():
            raise _JobDeletedError
        self._heartbeat.beat()
        self._states.retry()
        self._progress.record()

    def _wait_for_hosts(self, seconds: float) -> None:
        self._wait(seconds)
        self._children.reap_strays([*(host.pid for host in self._hosts), *self._feeding.pids, *self._mounting.pids])

    def _end_processes(self) -> None:
        """End every process of the job and take its mounts away."""
        with self._heartbeat.beating():
            problems = [*self._mounting.end(), *self._fleet.end()]
            if not self._children.kill_all():
                problems.append("some processes of the job could not be killed")
        try:
            # A child that was killed just as it mounted.
            fuse_mounts.detach(self._folder.hosts)
        except DataError as error:
            problems.append(str(error))
        for problem in problems:
            self._log(problem)

    def _record_processes(self) -> None:
        pids = {"agent": os.getpid(), **{host.name: host.pid for host in self._hosts}}
        identities = {name: process_tree.identify(pid) for name, pid in pids.items()}
        try:
            self._folder.write_processes({name: identity for name, identity in identities.items() if identity})
        except OSError as error:
            # They are found by their environment, too, when this process is dead.
            self._log(f"the job's processes cannot be recorded: {error}")

    def _log(self, text: str) -> None:
        """Write to the agent's log, which `main` makes one that loses what it cannot write."""
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        sys.stderr.flush()

    def _log_to_user(self, text: str) -> None:
        """Write to the first host's log, after everything the host itself said."""
        self._log_to_host(next(iter(self._sandboxes)), text)

    def _log_to_host(self, host: str, text: str) -> None:
        """Write to a host's log, where it can be written; the agent's log has it too."""
        self._log(text)
        with suppress(OSError):
            logs.append_line(self._folder.log(host), f"scriptmode: {text}")


def main(arguments: list[str]) -> None:
    """Go into the background and run the job of the given folder."""
    path, lock = Path(arguments[0]), int(arguments[1])
    # The lock must go with this process, not with whatever it starts.
    os.set_inheritable(lock, False)  # noqa: FBT003
    if os.fork():
        os._exit(0)
    sys.stderr = log_stream.open_log_stream(sys.stderr.fileno())
    agent = Agent(JobFolder(path), lock, os.environ)
    try:
        agent.run()
    except Exception as error:  # noqa: BLE001 - a job must end with a reason whatever happens
        if agent.is_deleted():
            agent.abandon()
            return
        traceback.print_exc()
        agent.fail(error)
