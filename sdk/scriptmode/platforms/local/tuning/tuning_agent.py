"""The agent of a tuning job: the detached process that starts its training jobs and follows them.

The agent decides by the record of the tuning job alone, and records a training job before it creates it, under a name
that follows from the tuning job's ARN, its time of creation and the training job's number. When the agent was killed,
its training jobs, which have agents of their own, go on, and another agent continues where it was: the next process
that describes the tuning job starts it (`tuning_service`).

The statuses: InProgress; Stopping, once a stop was requested, the time limit passed, or the first training jobs all
ended without an objective, until the running training jobs ended; then Completed, Stopped or Failed.

The arguments of `main` are ``<folder> <lock>``: the descriptor ``lock`` is the tuning job's lock, held.
"""

from __future__ import annotations

import hashlib
import math
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from scriptmode.core.machine.clock import SYSTEM
from scriptmode.core.request import tuning
from scriptmode.core.request.render import derived_model_dir
from scriptmode.core.spec.hosts import CLIENT_REGION
from scriptmode.core.spec.metric_definitions import Definition, MetricFinder
from scriptmode.core.spec.service_values import COMPLETED, FAILED, STOPPED
from scriptmode.core.text.messages import pluralize
from scriptmode.data import file_uris
from scriptmode.errors import JobExistsError, JobNotFoundError, ScriptmodeError
from scriptmode.platforms.local.service import LocalPlatform
from scriptmode.platforms.local.store.engine_record import read_engine_record
from scriptmode.platforms.local.store.host_logs import LogReader
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.tuning.search import Search
from scriptmode.platforms.local.tuning.tuning_store import Trial, TuningFolder
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from scriptmode.platforms.local.store.job_store import JobFolder

#: Seconds between two looks at the training jobs.
_POLL_SECONDS = 0.25
#: Training jobs after which the tuning job fails if none of them had an objective, as on Amazon SageMaker.
_FRUITLESS_JOBS = 5


def training_job_name(tuning_job: str, identity: str, number: int) -> str:
    """Return the name of a training job, in the service's form; ``identity`` differs between tuning jobs of a name."""
    digest = hashlib.sha256(f"{identity} {number}".encode()).hexdigest()[:8]
    return f"{tuning_job}-{number + 1:03d}-{digest}"


class ObjectiveReader:
    """Reader of the objective of one training job: of the first host whose log has values.

    Values of several hosts have no common order, and hosts that train together report the same.
    """

    def __init__(self, folder: JobFolder, name: str, regex: str) -> None:
        hosts = folder.read_job().request.resources.hosts
        self._readers = {LogReader(folder.log(host)): MetricFinder([Definition(name, regex)]) for host in hosts}
        #: The last value, None while there is none.
        self.last: float | None = None

    def read(self, *, final: bool) -> list[float]:
        """Return the values since the last call; with ``final`` the log is complete."""
        for reader, finder in self._readers.items():
            found: list[float] = []
            with suppress(OSError):
                for line, _ in reader.lines(final=final):
                    found += (value for _, value in finder.find(line))
            if found:
                self.last = found[-1]
                self._close_all_but(reader)
                return found
        return []

    def close(self) -> None:
        """Close the logs."""
        self._close_all_but(None)

    def _close_all_but(self, kept: LogReader | None) -> None:
        for reader in [each for each in self._readers if each is not kept]:
            del self._readers[reader]
            reader.close()


class TuningAgent:
    """Owner of one running tuning job."""

    def __init__(self, folder: TuningFolder) -> None:
        self._folder = folder
        self._record = folder.read_record()
        self._state = folder.read_state()
        self._trials = self._state.trials
        self._request = self._record.request
        # Its training jobs are in the same one.
        CLIENT_REGION.set(self._record.arn.split(":")[3])
        self._platform = _create_platform(self._record.platform)
        self._jobs = JobStore(Path(self._record.platform["data_dir"]))
        self._identity = f"{self._record.arn} {self._state.created}"
        seed = int(hashlib.sha256(self._identity.encode()).hexdigest()[:8], 16)
        self._spec = tuning.parse_spec(self._request, script_mode=False)
        self._search = Search(folder.name, self._spec, seed, max_resource=tuning.max_resource_of(self._request))
        self._objective = self._spec.objective
        metrics = self._request[tuning.DEFINITION]["AlgorithmSpecification"]["MetricDefinitions"]
        self._regex: str = next((each["Regex"] for each in metrics if each["Name"] == self._objective), "None")
        self._readers: dict[int, ObjectiveReader] = {}
        self._stopped_early: set[int] = set()
        self._is_saved = True

    def run(self) -> None:
        """Run the tuning job to its end."""
        self._restore()
        while not self._folder.is_deleted:
            self._watch()
            self._check_limits()
            # One at a time: a stop and the limits hold for the next one. What a full disk refuses is tried again.
            if self._may_start and self._save():
                self._start_job()
                continue
            if not self._running() and not self._may_start:
                break
            self._save()
            SYSTEM.sleep(_POLL_SECONDS)
        else:
            self._stop_jobs()
            return
        self._end()

    def _running(self) -> list[tuple[int, Trial]]:
        return [(number, trial) for number, trial in enumerate(self._trials) if not trial.has_ended]

    def _restore(self) -> None:
        """Build the search from the record, and create the training jobs that an earlier agent only recorded."""
        for number, trial in enumerate(self._trials):
            self._search.restore(trial.tuned)
            if trial.has_ended:
                if self._search.stops_early:
                    self._report(number, trial, final=True)
                self._tell(number, trial)
        for number, trial in self._running():
            folder = self._jobs.folder(trial.name)
            if folder.has_agent() or not folder.never_had_processes or read_engine_record(folder):
                trial.created = trial.created or time.time()
                continue
            with suppress(JobNotFoundError):
                self._platform.delete(trial.name)
            self._create(number, trial)

    def _watch(self) -> None:
        """Read the status of each running training job once, and new values of its objective."""
        for number, trial in self._running():
            try:
                # Before the log is read, so that the log of a job that ended is complete.
                description = self._platform.describe(trial.name)
            except ScriptmodeError as error:
                reason = "it was deleted" if isinstance(error, JobNotFoundError) else str(error)
                self._end_trial(number, trial, FAILED, reason)
                continue
            is_bad = self._report(number, trial, final=description.has_ended)
            if description.training_started and not trial.started:
                trial.started, self._is_saved = description.training_started.timestamp(), False
            if description.created and trial.created != description.created.timestamp():
                trial.created, self._is_saved = description.created.timestamp(), False
            if description.has_ended:
                ended = description.training_ended or description.modified
                self._end_trial(number, trial, str(description.status), description.failure_reason, ended)
                continue
            if trial.status != description.status:
                trial.status, self._is_saved = str(description.status), False
            if is_bad and number not in self._stopped_early:
                self._stopped_early.add(number)
                why = f"its {self._objective} is worse than that of others, or has more values than MaxResource"
                self._log(f"{trial.name} is stopped early: {why}")
                self._stop_job(trial)

    def _report(self, number: int, trial: Trial, *, final: bool) -> bool:
        """Read new values of the objective; return whether the training job is to be stopped early."""
        if number not in self._readers:
            try:
                folder = self._jobs.find(trial.name)
                self._readers[number] = ObjectiveReader(folder, self._objective, self._regex)
            except ScriptmodeError:
                return False
        values = self._readers[number].read(final=final)
        return self._search.stops_early and self._search.report(number, values)

    def _end_trial(self, number: int, trial: Trial, status: str, failure: str, ended: datetime | None = None) -> None:
        last = self._readers[number].last if number in self._readers else None
        # Of a number and NaN neither is the best one.
        trial.objective = last if last is not None and math.isfinite(last) else None
        trial.status, trial.failure = status, failure
        trial.ended = ended.timestamp() if ended else time.time()
        self._is_saved = False
        self._tell(number, trial)

    def _tell(self, number: int, trial: Trial) -> None:
        if reader := self._readers.pop(number, None):
            reader.close()
        objective = None if trial.status == FAILED else trial.objective
        self._search.finish(number, objective, is_complete=trial.status != STOPPED)

    def _check_limits(self) -> None:
        """Stop the training jobs where no more may run."""
        if self._state.status == "Stopping":
            return
        ended = sum(each.has_ended for each in self._trials)
        if self._is_limited():
            reason = "a stop was requested, or the time limit passed"
        elif ended >= _FRUITLESS_JOBS and not self._has_any_objective():
            reason = self._describe_fruitless()
        else:
            return
        self._log(f"stopping: {reason}")
        self._state.status, self._is_saved = "Stopping", False
        self._stop_jobs()

    def _is_limited(self) -> bool:
        """Return whether a stop was requested, or the time limit passed."""
        most = self._spec.max_runtime
        return self._folder.is_stop_requested or bool(most and time.time() - self._state.created > most)

    def _has_any_objective(self) -> bool:
        return any(each.objective_status == "Succeeded" for each in self._trials)

    def _describe_fruitless(self) -> str:
        launched = self._state.launched
        refused = next((each for each in self._trials if each.has_ended and not each.is_launched), None)
        # A training job that was stopped says nothing of the reason.
        if refused and all(each.status not in (COMPLETED, FAILED) for each in launched):
            return f"Training jobs could not be created: {refused.failure}"
        failed = next((each for each in launched if each.status == FAILED), None)
        ended = [each for each in launched if each.has_ended]
        if failed and all(each.status != COMPLETED for each in ended):
            return f"All training jobs failed. {failed.name}: {failed.failure}"
        return (
            f"No objective metrics found after running {pluralize(len(ended), 'training job')}: the Regex "
            f"{self._regex!r} of metric {self._objective!r} found no number in their logs"
        )

    def _stop_jobs(self) -> None:
        for _, trial in self._running():
            self._stop_job(trial)

    def _stop_job(self, trial: Trial) -> None:
        try:
            self._platform.stop(trial.name)
        except ScriptmodeError as error:
            # It may be deleted; what happens to it is read by its status.
            self._log(f"{trial.name} cannot be stopped: {error}")

    @property
    def _may_start(self) -> bool:
        """Whether one more training job may start now."""
        is_open = self._state.status != "Stopping" and len(self._trials) < self._spec.jobs
        return is_open and len(self._running()) < self._spec.max_parallel_jobs

    def _start_job(self) -> None:
        number = len(self._trials)
        name = training_job_name(self._folder.name, self._identity, number)
        self._trials.append(Trial(name, self._search.suggest(), created=0.0))
        self._is_saved = False
        self._create(number, self._trials[number])

    def _create(self, number: int, trial: Trial) -> None:
        """Create a training job, after it is recorded; one that is refused has failed, and is not listed."""
        while not self._save():
            SYSTEM.sleep(_POLL_SECONDS)
        try:
            # An earlier agent may have created it.
            with suppress(JobExistsError):
                self._platform.create(self._training_request(trial))
        except ScriptmodeError as error:
            self._log(f"{trial.name} cannot be created: {error}")
            self._end_trial(number, trial, FAILED, str(error))
        else:
            trial.created, self._is_saved = time.time(), False

    def _training_request(self, trial: Trial) -> dict[str, Any]:
        """Return the request of a training job.

        A model_dir in the directory of the tuning job is changed to one in the directory of the training job: in the
        directory of jobs every directory is that of a training job.
        """
        request = tuning.training_request(self._request, trial.name, trial.tuned)
        output, parameters = request["OutputDataConfig"]["S3OutputPath"], request["HyperParameters"]
        shared, own = (derived_model_dir(output, name, with_mpi=False) for name in (self._folder.name, trial.name))
        is_shared = parameters.get(contract.MODEL_DIR_PARAMETER) == contract.encode(shared)
        if is_shared and output == f"{file_uris.SCHEME}{self._jobs.jobs}":
            parameters[contract.MODEL_DIR_PARAMETER] = contract.encode(own)
        return request

    def _end(self) -> None:
        if self._has_any_objective() or self._is_limited():
            self._state.status = STOPPED if self._state.status == "Stopping" else COMPLETED
        else:
            self._state.status, self._state.failure = FAILED, self._describe_fruitless()
        self._state.ended, self._is_saved = time.time(), False
        while not self._save():
            SYSTEM.sleep(_POLL_SECONDS)

    def _save(self) -> bool:
        """Write the state if it changed; return whether the record is up to date, or is deleted."""
        if not self._is_saved:
            self._state.modified = time.time()
            try:
                self._folder.write_state(self._state)
            except OSError as error:
                if not self._folder.is_deleted:
                    self._log(f"the state cannot be written: {error}")
                    return False
            self._is_saved = True
        return True

    @staticmethod
    def _log(text: str) -> None:
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        sys.stderr.flush()


def main(arguments: list[str]) -> None:
    """Run the tuning job of the given directory."""
    folder = TuningFolder(Path(arguments[0]))
    try:
        TuningAgent(folder).run()
    except Exception as error:  # noqa: BLE001 - a tuning job must end with a reason whatever happens
        traceback.print_exc()
        record_internal_error(folder, error)


def _create_platform(arguments: Mapping[str, Any]) -> LocalPlatform:
    """Return the platform of the training jobs from what its ``arguments`` returned."""
    others = dict(arguments)
    create = resolve_name(others.pop("platform")) if "platform" in others else LocalPlatform
    platform: LocalPlatform = create(**others.pop("options", {}), **others)
    return platform


def record_internal_error(folder: TuningFolder, error: Exception) -> None:
    """Record a tuning job as Failed because of an error of its agent, and stop its training jobs."""
    state, platform = folder.read_state(), _create_platform(folder.read_record().platform)
    for trial in state.trials:
        if not trial.has_ended:
            trial.status, trial.ended, trial.failure = STOPPED, time.time(), "the tuning job failed"
            with suppress(ScriptmodeError):
                platform.stop(trial.name)
    state.failure = f"InternalServerError: {type(error).__name__}: {error}; see {folder.agent_log}"
    state.status, state.modified, state.ended = FAILED, time.time(), time.time()
    folder.write_state(state)
