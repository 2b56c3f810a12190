"""The agent: the detached process that owns one running job, from Starting to Completed, Failed or Stopped.

The secondary statuses in order, all of them entered by this process (`Agent._enter`):

- Pending: only jobs with ``queue``; the agent polls until it is their turn (`_store.job_queue`).
- Starting: the hosts' sandboxes are prepared.
- Downloading: the hosts' agents stage the inputs, and a forked task copies an earlier job's checkpoints.
- DownloadingTrainingImage: only containers whose image is missing. A forked task pulls it.
- Training: the hosts' agents run the hosts, which are under `supervision` here, and a forked task copies checkpoints.
- Stopping: a stop was requested, or MaxRuntimeInSeconds passed in Downloading or in Training.
- Interrupted: hosts or the agent were lost or ended through no fault of the script; the next run is Starting, by the
  agent that the engine queues again, that takes this one's place, or that finds the job without one (`interruption`).
- Uploading: a forked task packs and delivers the artifacts.
- Completed, Stopped, MaxRuntimeExceeded, MaxWaitTimeExceeded, Failed: recorded once, durably; then files are removed.

The agent does all that happens once in a job; `host_agent` does what happens where the hosts run, and `host_link` is
the connection to it.

What ends a job: the end of the hosts, the failure of any step, a request to stop (the file ``stop``, or SIGTERM to the
agent), the time limit, which Downloading and Training have each, MaxWaitTimeInSeconds since the job's creation, an
error of an agent itself (Failed with InternalServerError), and the removal of the job's directory (everything is
killed, nothing is recorded). The loop wakes at the end of a child, at an event of a host's agent and at least every
`supervision.POLL_SECONDS`, and writes the heartbeat. Image and upload have no time limit; a stop kills the first, and
the download. The agent has no threads, because it forks.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.spec.service_values import COMPLETED, JobEvent
from scriptmode.errors import ContainerError, DataError
from scriptmode_local._agent import cleanup, interruption, progress, supervision
from scriptmode_local._agent.artifact_delivery import Delivery
from scriptmode_local._agent.host_failure import describe_host_failure
from scriptmode_local._agent.host_link import HostLinks, LinkedHost
from scriptmode_local._agent.supervision import SupervisionHooks
from scriptmode_local._data import mounts
from scriptmode_local._data.durable import sync_directory, sync_file
from scriptmode_local._hosts.agent_control import AgentSignal
from scriptmode_local._hosts.engine import find_control, find_engine
from scriptmode_local._outputs import checkpoints
from scriptmode_local._store import agent_log, heartbeat
from scriptmode_local._store.job_queue import JobQueue
from scriptmode_local._store.job_store import JobFolder, JobStore
from scriptmode_local._store.log_times import LogTimesRecorder
from scriptmode_local._store.state import MESSAGES, Outcome
from scriptmode_local._store.state_recorder import StateRecorder
from scriptmode_local._system import full_disk
from scriptmode_local._system.forked_tasks import Children, ForkedTask, Tasks
from scriptmode_runtime import contract
from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_runtime._processes.proc import ProcessIdentity

#: Interval of checking whether it is the turn of a queued job.
_QUEUE_POLL_SECONDS = 0.3
#: Interval of reporting the progress of a long download.
PROGRESS_SECONDS = 5.0


class _JobDeletedError(Exception):
    """The job's directory was removed: the job is deleted."""


def _client_error(reason: str) -> Outcome:
    return Outcome.failed("ClientError", supervision.split_cause(reason))


def _find_copy_error(restoring: ForkedTask | None) -> Outcome | None:
    """Return how the job ends because an earlier job's checkpoints could not be copied; None without such an error."""
    if restoring is None or not restoring.poll() or not restoring.error:
        return None
    # A process of the job's own that was killed is not a fault of its data.
    kind = "InternalServerError" if restoring.was_killed else "ClientError"
    return Outcome.failed(kind, supervision.split_cause(f"Data download failed: {restoring.error}"))


class Agent:
    """Owner of one running job."""

    def __init__(self, folder: JobFolder, lock: int, inherited: Mapping[str, str]) -> None:
        self._folder = folder
        self._lock = lock
        #: The job as it was asked for.
        self._asked = folder.read_job()
        kind = self._asked.request.resources.host_kind
        self._tasks = Tasks(lock)
        self._fleet = find_engine(kind).create_fleet(folder, self._asked, self._tasks, inherited)
        self._sandboxes = self._fleet.sandboxes
        self._job = self._asked.with_hosts(len(self._sandboxes))
        self._request = self._job.request
        self._state = folder.read_state()
        #: When this machine started, by the time of day now.
        self._boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        self._children = Children()
        #: The data directory, which names the disk of the job's directory in messages.
        self._disk = folder.path.parent.parent
        self._queue = JobQueue(JobStore(self._disk))
        #: Whether the engine queued the job, so that it uses nothing that queued jobs of this machine wait for.
        self._has_waited = bool(kind.pending_message)
        self._log = agent_log.AgentLog(folder.log, self._sandboxes)
        self._states = StateRecorder(folder)
        sandboxes = list(self._sandboxes.values())
        self._links = HostLinks(self._log.tell_host)
        self._hosts: Sequence[LinkedHost] = ()
        self._processes: Mapping[str, ProcessIdentity] = {}
        self._next_progress = time.monotonic() + PROGRESS_SECONDS
        self._heartbeat = heartbeat.Heartbeat(lock)
        self._checkpoints = checkpoints.create_sync(folder, self._request, sandboxes)
        self._delivery = Delivery(folder, self._request, sandboxes, self._checkpoints, self._disk, self._log.tell_user)
        self._progress = progress.ProgressRecorder(self._links.progress, folder.write_progress)
        self._log_times = LogTimesRecorder(map(folder.log, self._sandboxes))
        #: Whether the job is Interrupted and nothing but this process starts it again.
        self.runs_again = False

    def run(self) -> None:
        """Run the job to its end."""
        # Nothing of the script ran in a job that is Pending.
        if self._state.secondary == "Pending" or self._folder.never_had_processes:
            self._record_processes({})
        elif uncopied := self._prepare_next_run():
            self._end(_client_error(f"{uncopied}; they are kept in {self._folder.hosts}"))
            return
        steps = (self._await_turn, self._prepare, self._await_hosts, self._download, self._pull_image, self._train)
        outcome = next(filter(None, (step() for step in steps)))
        self._end_processes()
        if self._hosts and outcome.secondary != "Failed":
            outcome = self._links.find_incomplete() or outcome
        if self._hosts and outcome.kind:
            # The script's own log says at most that it was ended.
            self._log.tell_user(outcome.reason)
        outcome = self._explain_end(outcome)
        if outcome.secondary == "Interrupted":
            requeued = self._interrupt(outcome.message)
            if requeued is None:
                return
            outcome = requeued
        if self._hosts:
            outcome = self._upload(outcome)
        self._end(outcome)

    @property
    def status(self) -> str:
        """The job's status, as this process recorded it."""
        return self._state.status

    def leave_queue(self) -> None:
        """Remove the job from the queue, so that the next job can start."""
        self._queue.leave(self._state.name)

    def is_deleted(self) -> bool:
        """Return whether the job was deleted: its directory was removed."""
        return self._folder.is_deleted(self._lock)

    def abandon(self) -> None:
        """Stop everything without recording anything: the job is deleted."""
        hooks = self._hooks()._replace(wait=self._wait_for_links)
        supervision.end_hosts(self._hosts, supervision.SHORT_GRACE_SECONDS, hooks, lambda: None)
        self._end_processes()
        self._folder.remove_rest()

    def fail(self, error: Exception) -> None:
        """Record the job as Failed because of an error of the agent itself; leave a job that has ended as it is."""
        if self._state.ended:
            agent_log.write_line("warning: the job had ended before this error, so its status is unchanged")
            return
        try:
            self._end_processes()
        except Exception:  # noqa: BLE001 - the job must end in any case
            traceback.print_exc()
        self._end(Outcome.failed(*supervision.describe_error(error, self._folder)))

    def _prepare_next_run(self) -> str:
        """Remove the files of an earlier run; copy its last checkpoints if it could not, or return why that failed."""
        has_ended_itself = self._state.secondary == "Interrupted" and self._folder.read_processes()
        others = tuple(event for event in self._state.events if event.reason != "CheckpointsNotCopied")
        has_copied = has_ended_itself and others == self._state.events
        # Of an agent that could not record that.
        self._state = self._state.with_status("Interrupted", self._folder.last_heartbeat(self._state))
        self._heartbeat.beat()
        self._record_processes({})
        with self._heartbeat.beating():
            lost = interruption.describe_lost_time(self._folder, self._state, self._request.output)
            rescue = interruption.rescue_checkpoints
            # With the hosts that the earlier run may have had.
            losses = [] if has_copied else rescue(self._folder, self._asked, self._log.tell_user)
            if uncopied := dict(losses).get("CheckpointsNotCopied"):
                return uncopied
            before = replace(self._state, events=others)
            self._state = interruption.prepare_next_run(self._folder, before, losses, lost)
        return ""

    def _await_turn(self) -> Outcome | None:
        """Wait for other jobs if the job is queued; return an outcome only if it is stopped meanwhile."""
        processes = len(self._request.resources.hosts) * self._request.processes_of_host
        place = (self._state.name, self._state.created, processes)
        if not self._job.queue and not self._has_waited:
            # Without the record queued jobs do not wait for this one.
            with suppress(OSError):
                self._queue.enter(*place)
        problem = ""
        while self._job.queue and not self._has_waited:
            if outcome := self._find_stop():
                return outcome
            # What a full disk refuses is tried again.
            try:
                if self._queue.try_start(*place, self._job.queue):
                    break
            except OSError as error:
                if problem != (problem := str(error)):
                    self._log.tell_user(f"the job waits until the queue of its data directory can be used: {problem}")
            self._enter("Pending")
            self._wait(_QUEUE_POLL_SECONDS)
        self._enter("Starting")
        return None

    def _prepare(self) -> Outcome | None:
        """Prepare the hosts' sandboxes and start their agents; return an outcome only if the job ends here."""
        try:
            with full_disk.translate_full_disk_errors(self._disk), self._heartbeat.beating():
                self._folder.channels.mkdir(exist_ok=True)
                started = self._fleet.start_agents(self._serve)
                if (count := len(self._sandboxes)) < (most := self._asked.request.resources.count):
                    self._log.tell_user(f"this run has {count} of the {most} hosts that the job asked for")
                self._links.connect(started)
                for warning in filter(None, (agent.warning for agent in started)):
                    self._log.tell_user(warning)
                    self._add_event("SetupFailed", warning)
        except (ContainerError, DataError, OSError) as error:
            return _client_error(f"the hosts cannot be prepared: {error}")
        return None

    def _await_hosts(self) -> Outcome | None:
        """Wait until every host's machine is there, for which no limit but MaxWaitTimeInSeconds counts."""
        while message := self._links.waits_for:
            if outcome := self._find_stop() or self._find_failure():
                return outcome
            waiting = f"{MESSAGES['Starting']}: waiting for {message}"
            if waiting != self._state.transitions[-1].message:
                self._state = self._state.with_message(waiting, self._now())
                self._states.record(self._state)
            self._wait(supervision.POLL_SECONDS)
        return None

    def _download(self) -> Outcome | None:
        """Let the hosts' agents stage the inputs; return an outcome only if the job ends here."""
        self._enter("Downloading")
        self._links.send("stage")
        restore = self._delivery.restore_checkpoints
        restoring = self._tasks.start(restore, "the copy of the checkpoints") if self._checkpoints else None
        limit = self._request.limits.max_run
        deadline = time.monotonic() + limit
        while not self._links.is_staged or (restoring and not restoring.poll()):
            if outcome := self._find_stop() or self._find_failure() or _find_copy_error(restoring):
                return outcome
            if time.monotonic() > deadline:
                self._enter("Stopping", f"Stopping: the inputs were not there after MaxRuntimeInSeconds, {limit:g} s")
                return Outcome("MaxRuntimeExceeded")
            self._record_progress()
            self._wait(supervision.POLL_SECONDS)
        return _find_copy_error(restoring)

    def _serve(self, fleet: Fleet, commands: int, events: int) -> None:
        """Run the agent of a part of the hosts, in a fork of this process."""
        from scriptmode_local._agent import host_agent

        host_agent.HostAgent(self._folder, self._job, fleet, self._tasks, (commands, events)).serve()

    def _pull_image(self) -> Outcome | None:
        """Pull the image if it is missing on this machine; return an outcome only if the job ends here."""
        if not self._request.resources.host_kind.uses_docker:
            return None
        from scriptmode.containers import _docker_client, _training_images

        image = str(self._request.algorithm.image_uri)
        try:
            if _docker_client.has_image(image):
                return None
        except ContainerError as error:
            return _client_error(str(error))
        self._enter("DownloadingTrainingImage")
        task = self._tasks.start(lambda: _training_images.pull_image(image), "the pull of the image")
        while not task.poll():
            if self._stop_requested():
                self._enter("Stopping")
                task.kill()
            self._wait(supervision.POLL_SECONDS)
        if self._stop_requested():
            return Outcome("Stopped")
        return _client_error(task.error) if task.error else None

    def _train(self) -> Outcome:
        self._progress.record(now=True)
        self._enter("Training")
        self._hosts = self._links.hosts
        limit, passed = float(self._request.limits.max_run), self._state.seconds_in("Training")
        wait_left = self._wait_left()
        self._links.send("train", left=min(limit - passed, wait_left))
        # Now, when the hosts start: the package may be another one after a long job.
        from scriptmode_local._inputs import pipe_mode

        if self._checkpoints:
            self._tasks.start(self._checkpoints.run, "the upload of checkpoints", is_endless=True)
        # The script has the grace period; `train` needs the margin after it to kill, reap and report.
        grace = self._job.stop_grace + contract.STOP_MARGIN
        hosts, hooks = self._hosts, self._hooks()
        outcome = supervision.supervise(hosts, limit, grace, hooks, passed=passed, wait_left=wait_left)
        self._progress.record(now=True)
        if outcome.secondary == "Completed":
            read = {channel.channel for channel in self._links.progress()}
            for host, text in pipe_mode.unread_warnings(self._request, list(self._sandboxes.values()), read):
                self._log.tell_host(host, text)
        return outcome

    def _find_stop(self) -> Outcome | None:
        """Return how a job ends that does not train yet: it was requested to stop, or waited for too long."""
        if self._stop_requested():
            self._enter("Stopping")
            return Outcome("Stopped")
        if self._wait_left() <= 0:
            self._enter("Stopping", supervision.WAITED)
            return Outcome("MaxWaitTimeExceeded")
        return None

    def _wait_left(self) -> float:
        """Return the seconds that are left of MaxWaitTimeInSeconds, which counts from the job's creation."""
        limit = self._request.limits.max_wait
        return float("inf") if limit is None else self._state.created + limit - self._now()

    def _hooks(self) -> SupervisionHooks:
        return SupervisionHooks(
            wait=self._wait,
            stop_requested=self._stop_requested,
            on_stopping=self._enter_stopping,
            describe_failure=self._describe_failure,
            find_failure=self._find_failure,
            stops_now=self._stops_now,
        )

    def _find_failure(self) -> Outcome | None:
        """Return how the job ends because an agent reported a failure, or was lost, perhaps with its machine."""
        failure = self._links.failure()
        return (failure and self._links.is_lost() and self._find_disconnected()) or failure

    def _find_disconnected(self, code: int | None = None) -> Outcome | None:
        # A scheduler may not answer soon.
        with self._heartbeat.beating():
            disconnected = self._fleet.find_disconnected(code)
        if disconnected is None:
            return None
        return Outcome.failed("InternalServerError", Failure(str(disconnected)))._replace(is_machine_lost=True)

    def _explain_end(self, outcome: Outcome) -> Outcome:
        was_signalled = self._children.terminated and not self._children.is_asked_to_stop
        with self._heartbeat.beating():
            explained = interruption.explain_end(
                self._folder, self._request, self._state, outcome, was_signalled=was_signalled
            )
        text = explained.message or explained.reason
        if outcome.reason and explained is not outcome and text not in outcome.reason:
            agent_log.write_line(f"{text}; the failure before that: {outcome.reason}")
        return explained

    def _enter_stopping(self, message: str) -> None:
        message += f", SIGKILL {self._job.stop_grace:g} s after SIGTERM"
        if self._stop_requested():
            outcome = self._explain_end(Outcome("Stopped"))
            if outcome.secondary == "Interrupted":
                self._enter("Interrupted", outcome.message)
                return
            message = outcome.message or message
        self._enter("Stopping", message)

    def _stops_now(self) -> bool:
        """Return whether a stop without the grace period was requested, which the status and the log then tell."""
        is_now = self._folder.stops_now
        if is_now and self._state.secondary == "Stopping" and self._state.transitions[-1].message != supervision.NOW:
            self._state = self._state.with_message(supervision.NOW, self._now())
            self._states.record(self._state)
            self._log.tell_user(supervision.NOW)
        return is_now

    def _interrupt(self, reason: str) -> Outcome | None:
        """Copy the last checkpoints and queue the job again; return an outcome if that is impossible."""
        if self._hosts and self._delivery.checkpoints:
            task = self._run_task(self._delivery.finish_checkpoints)
            for event in task.value or ():
                self._add_event(*event)
            if task.error:
                self._log.tell_user(f"checkpoints were not copied: {task.error}")
                self._add_event("CheckpointsNotCopied", f"the last checkpoints were not copied: {task.error}")
        self._sync_logs()
        self._enter("Interrupted", reason)
        self.leave_queue()
        outcome = interruption.requeue(self._folder, reason)
        # The machine of one that was signalled goes down.
        self.runs_again = outcome is None and not self._has_waited and not self._children.terminated
        return outcome

    def _run_task(self, work: Callable[[], Any]) -> ForkedTask:
        task = self._tasks.start(work, "the upload")
        while not task.poll():
            self._wait(supervision.POLL_SECONDS)
        return task

    def _describe_failure(self, name: str, code: int) -> Outcome:
        if any(host.is_overdue for host in self._hosts):
            # While this process was stopped.
            return Outcome("MaxRuntimeExceeded")
        machine_failure = next(host.machine_failure for host in self._hosts if host.name == name)
        if machine_failure:
            return Outcome.failed("ClientError", Failure(f"{name}: {machine_failure}", host=name))
        if disconnected := self._find_disconnected(code):
            return disconnected
        return describe_host_failure(self._folder, self._sandboxes, name, code)

    def _upload(self, outcome: Outcome) -> Outcome:
        """Deliver the artifacts; if that fails, return Failed for a job that had not failed yet.

        A completed job whose hosts left their model in this machine's ``/opt/ml`` has failed, too.
        """
        expects_model = False
        if outcome.secondary == "Completed":
            if (misplaced := self._links.misplaced()) and not self._delivery.has_model:
                outcome = _client_error(misplaced)
            else:
                self._enter("Uploading")
                expects_model = True
        with_model = outcome.secondary != "Failed"
        task = self._run_task(lambda: self._delivery.deliver(with_model=with_model, expects_model=expects_model))
        if task.error:
            self._log.tell_user(f"artifacts were not delivered: {task.error}")
            if with_model:
                location = f"the hosts' files are kept in {self._folder.output} and {self._folder.hosts}"
                return _client_error(f"Artifact upload failed: {task.error}; {location}")
            self._add_event("OutputLeftOut", f"the artifacts were not delivered: {task.error}")
            return outcome
        uri, events = task.value
        self._state = replace(self._state, artifacts=uri)
        for event in events:
            self._add_event(*event)
        return outcome

    def _end(self, outcome: Outcome) -> None:
        """Record the final state of the job, then remove the files that it does not need any more."""
        self._sync_logs()
        with self._heartbeat.beating():
            self._state = agent_log.with_losses(self._state, {name: self._folder.log(name) for name in self._sandboxes})
        self._enter(outcome.secondary, outcome.message, outcome.reason, outcome.failure)
        for warning in cleanup.remove_unneeded_files(self._folder, failed=outcome.secondary == "Failed"):
            agent_log.write_line(warning)
        # Last: it may end this process.
        if outcome.secondary != COMPLETED:
            what = AgentSignal.FAILED if outcome.reason else AgentSignal.STOPPED
            find_control(self._folder).signal(self._folder, what)

    def _sync_logs(self) -> None:
        """Flush the hosts' logs to the disk, so that they are durable before the final state is."""
        with self._heartbeat.beating():
            for name in self._sandboxes:
                # A log that was replaced by something else does not prevent syncing the others.
                with suppress(OSError):
                    sync_file(self._folder.log(name))
            with suppress(OSError):
                sync_directory(self._folder.log("host").parent)

    def _enter(self, secondary: str, message: str = "", reason: str = "", failure: Failure | None = None) -> None:
        if self.is_deleted():
            raise _JobDeletedError
        self._heartbeat.beat()
        before = self._state
        self._state = before.with_status(secondary, self._now(), message=message, reason=reason, failure=failure)
        if self._state.ended:
            self._states.record_last(self._state, self._wait)
        elif self._state is not before:
            self._states.record(self._state)

    def _now(self) -> float:
        """Return the time of day as it is if nobody sets the clock while the job runs: durations stay true."""
        return self._boot + time.clock_gettime(time.CLOCK_BOOTTIME)

    def _record_progress(self) -> None:
        """Record in the status message how much of the current channel is staged, every `PROGRESS_SECONDS`."""
        if time.monotonic() <= self._next_progress:
            return
        here = next(reversed(self._links.progress()), None)
        if here and here.done:
            self._next_progress = time.monotonic() + PROGRESS_SECONDS
            amount = f"{here.done / 1e9:.1f} of {(here.total or 0) / 1e9:.1f} GB"
            message = f"{MESSAGES['Downloading']}: channel {here.channel!r}, {amount}"
            self._state = self._state.with_message(message, self._now())
            self._states.record(self._state)

    def _stop_requested(self) -> bool:
        asked = self._children.terminated or self._children.is_asked_to_stop
        return asked or self._folder.stop_requested() is not None

    def _wait(self, seconds: float) -> None:
        self._wait_for_links(seconds)
        if self.is_deleted():
            raise _JobDeletedError
        if self._links.processes != self._processes:
            self._processes = self._links.processes
            self._record_processes(self._processes)
        self._heartbeat.beat()
        for line in self._tasks.watch():
            self._log.tell_user(line)
        self._states.retry()
        self._progress.record()
        self._log_times.record()

    def _wait_for_links(self, seconds: float) -> None:
        """Wait for the end of a child, a signal or an event of a host's agent, for the given seconds at most."""
        self._children.wait(seconds, self._links.descriptors)
        self._links.poll()

    def _end_processes(self) -> None:
        with self._heartbeat.beating():
            problems = self._links.end(self._wait_for_links)
            # First: a process that still runs holds its port, and a launcher the lock of its directory.
            if not self._children.kill_all():
                problems.append("some processes of the job could not be killed")
            for left in self._fleet.remove_hosts():
                self._log.tell_user(left)
        try:
            # Those of a host's agent that was killed.
            mounts.detach(self._folder.hosts)
        except DataError as error:
            problems.append(str(error))
        for problem in problems:
            agent_log.write_line(problem)

    def _record_processes(self, processes: Mapping[str, ProcessIdentity]) -> None:
        own = proc.identify(os.getpid())
        try:
            self._folder.write_processes({**({"agent": own} if own else {}), **processes})
        except OSError as error:
            # Recovery also finds them by their environment when this process is dead.
            agent_log.write_line(f"the job's processes cannot be recorded: {error}")

    def _add_event(self, reason: str, message: str, host: str = "") -> None:
        """Record an event. The next status may be the current one, with which nothing would be written."""
        self._state = self._state.with_event(JobEvent(reason, message, host, time=self._now()))
        self._states.record(self._state)
