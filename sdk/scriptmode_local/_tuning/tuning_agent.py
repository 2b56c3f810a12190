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

import copy
import hashlib
import math
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from scriptmode._core.machine.clock import SYSTEM
from scriptmode._core.request import tuning
from scriptmode._core.request.render import derived_model_dir
from scriptmode._core.spec.hosts import CLIENT_REGION
from scriptmode._core.spec.metric_definitions import Definition, MetricFinder
from scriptmode._core.spec.service_values import COMPLETED, ENDED, FAILED, STOPPED
from scriptmode._core.text.messages import pluralize
from scriptmode.errors import JobExistsError, JobNotFoundError, ScriptmodeError
from scriptmode_local._data import file_uris
from scriptmode_local._service.service import LocalPlatform
from scriptmode_local._store import agent_log
from scriptmode_local._store.host_logs import LogReader
from scriptmode_local._store.job_store import JobFolder, JobStore
from scriptmode_local._tuning.search import Search
from scriptmode_local._tuning.tuning_store import TuningFolder
from scriptmode_runtime import contract
from scriptmode_runtime._terminal_line import readable

#: Seconds between two looks at the training jobs.
_POLL_SECONDS = 0.25
#: Training jobs after which the tuning job fails if none of them had an objective, as on Amazon SageMaker.
_FRUITLESS_JOBS = 5
#: Fields of a training job's description that its summary has.
_DESCRIBED = ("CreationTime", "TrainingStartTime", "TrainingEndTime", "TrainingJobStatus", "FailureReason")


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
            values: list[float] = []
            with suppress(OSError):
                for line, _ in reader.lines(final=final):
                    values += (value for _, value in finder.find(line))
            if values:
                self.last = values[-1]
                self.close(but=reader)
                return values
        return []

    def close(self, *, but: LogReader | None = None) -> None:
        """Close the logs, all or all but one."""
        for reader in [other for other in self._readers if other is not but]:
            del self._readers[reader]
            reader.close()


class TuningAgent:
    """Owner of one running tuning job."""

    def __init__(self, folder: TuningFolder) -> None:
        self._folder = folder
        self._record, self._state = folder.read_record(), folder.read_state()
        self._jobs: list[dict[str, Any]] = self._state["TrainingJobs"]
        self._request = self._record.request
        # Its training jobs are in the same one.
        CLIENT_REGION.set(self._record.arn.split(":")[3])
        self._platform = _create_platform(self._record.platform)
        self._store = JobStore(Path(self._record.platform["data_dir"]))
        self._identity = f"{self._record.arn} {self._state['CreationTime']}"
        seed = int(hashlib.sha256(self._identity.encode()).hexdigest()[:8], 16)
        self._spec = tuning.parse_spec(self._request, script_mode=False)
        self._search = Search(folder.name, self._spec, seed)
        metrics = self._request[tuning.DEFINITION]["AlgorithmSpecification"]["MetricDefinitions"]
        self._regex: str = next(metric["Regex"] for metric in metrics if metric["Name"] == self._spec.objective)
        self._readers: dict[int, ObjectiveReader] = {}
        self._stopped_early: set[int] = set()
        self._saved = copy.deepcopy(self._state)

    def run(self) -> None:
        """Run the tuning job to its end."""
        for number, job in enumerate(self._jobs):
            self._search.restore(job["TunedHyperParameters"])
            if job["TrainingJobStatus"] in ENDED:
                if self._search.stops_early:
                    self._report(number, final=True)
                self._tell(number)
        for number in self._recorded():
            self._create(number)
        while not self._folder.is_deleted:
            self._watch()
            self._check_limits()
            # One at a time: a stop and the limits hold for the next one.
            is_open = not self._is_stopping and len(self._jobs) < self._spec.jobs
            if is_open and len(self._running()) < self._spec.max_parallel_jobs:
                self._suggest()
            # What a full disk refuses is tried again.
            if self._save() and (recorded := self._recorded()):
                self._create(recorded[0])
                continue
            if not self._running():
                break
            SYSTEM.sleep(_POLL_SECONDS)
        else:
            self._stop_jobs()
            return
        self._end()

    def _running(self) -> list[int]:
        return [number for number, job in enumerate(self._jobs) if job["TrainingJobStatus"] not in ENDED]

    def _recorded(self) -> list[int]:
        """Return the training jobs that were recorded and not created; an earlier agent may have created the last."""
        return [number for number in self._running() if "CreationTime" not in self._jobs[number]]

    def _watch(self) -> None:
        """Read the description of each running training job once, and new values of its objective."""
        for number in self._running():
            job = self._jobs[number]
            if "CreationTime" not in job:
                continue
            try:
                # Before the log is read, so that the log of a job that ended is complete.
                description = self._platform.describe(job["TrainingJobName"])
            except ScriptmodeError as error:
                reason = "it was deleted" if isinstance(error, JobNotFoundError) else str(error)
                self._fail(number, reason)
                continue
            is_bad = self._report(number, final=description.has_ended)
            described = {name: description.response.get(name) for name in _DESCRIBED}
            for name, value in described.items():
                if value is not None:
                    # The state has times in seconds since the epoch.
                    job[name] = value.timestamp() if isinstance(value, datetime) else value
            if description.has_ended:
                self._finish(number)
            elif is_bad and number not in self._stopped_early:
                self._stopped_early.add(number)
                why = f"its {self._spec.objective} is worse than that of others, or has more values than MaxResource"
                agent_log.write_line(f"{job['TrainingJobName']} is stopped early: {why}")
                self._stop_job(job)

    def _report(self, number: int, *, final: bool) -> bool:
        """Read new values of the objective; return whether the training job is to be stopped early."""
        if number not in self._readers:
            try:
                folder = self._store.find(self._jobs[number]["TrainingJobName"])
                self._readers[number] = ObjectiveReader(folder, self._spec.objective, self._regex)
            except ScriptmodeError:
                return False
        values = self._readers[number].read(final=final)
        return self._search.stops_early and self._search.report(number, values)

    def _fail(self, number: int, reason: str) -> None:
        failure = contract.shorten(readable(reason), contract.FAILURE_LIMIT)
        self._jobs[number].update(TrainingJobStatus=FAILED, FailureReason=failure, TrainingEndTime=time.time())
        self._finish(number)

    def _finish(self, number: int) -> None:
        """Record the objective of a training job that ended; a failed one never has the best."""
        job, last = self._jobs[number], self._readers[number].last if number in self._readers else None
        job["ObjectiveStatus"] = "Failed"
        # Of a number and NaN neither is the best one.
        if last is not None and math.isfinite(last):
            objective = {"Type": self._spec.objective_type, "MetricName": self._spec.objective, "Value": last}
            job[tuning.FINAL_OBJECTIVE] = objective
            job["ObjectiveStatus"] = "Failed" if job["TrainingJobStatus"] == FAILED else "Succeeded"
        job.setdefault("TrainingEndTime", time.time())
        self._tell(number)

    def _tell(self, number: int) -> None:
        if reader := self._readers.pop(number, None):
            reader.close()
        job = self._jobs[number]
        metric = job.get(tuning.FINAL_OBJECTIVE) if job["ObjectiveStatus"] == "Succeeded" else None
        objective = metric and metric["Value"]
        self._search.finish(number, objective, is_complete=job["TrainingJobStatus"] != STOPPED)

    def _check_limits(self) -> None:
        """Stop the training jobs where no more may run."""
        if self._is_stopping:
            return
        ended = len(self._jobs) - len(self._running())
        is_fruitless = ended >= _FRUITLESS_JOBS and not self._has_any_objective
        if self._is_limited or is_fruitless:
            why = "a stop was requested, or the time limit passed"
            agent_log.write_line(f"stopping: {why if self._is_limited else self._describe_fruitless()}")
            self._state["HyperParameterTuningJobStatus"] = "Stopping"
            self._stop_jobs()

    @property
    def _is_stopping(self) -> bool:
        return bool(self._state["HyperParameterTuningJobStatus"] == "Stopping")

    @property
    def _is_limited(self) -> bool:
        """Whether a stop was requested, or the time limit passed."""
        most = self._spec.max_runtime
        return self._folder.is_stop_requested or bool(most and time.time() - self._state["CreationTime"] > most)

    @property
    def _has_any_objective(self) -> bool:
        return any(job["ObjectiveStatus"] == "Succeeded" for job in self._jobs)

    def _describe_fruitless(self) -> str:
        """Return why no training job had a value: the first failure, unless a training job completed without one."""
        failures = [
            job.get("FailureReason", "no reason is known") for job in self._jobs if job["TrainingJobStatus"] == FAILED
        ]
        reason = f"the Regex {self._regex!r} of metric {self._spec.objective!r} found no number in their logs"
        if failures and all(job["TrainingJobStatus"] != COMPLETED for job in self._jobs):
            reason = failures[0]
        count = sum("CreationTime" in job for job in self._jobs)
        return f"No objective metrics found after running {pluralize(count, 'training job')}: {reason}"

    def _stop_jobs(self) -> None:
        for number in self._running():
            self._stop_job(self._jobs[number])

    def _stop_job(self, job: dict[str, Any]) -> None:
        if "CreationTime" not in job:
            job["TrainingJobStatus"] = STOPPED
            return
        try:
            self._platform.stop(job["TrainingJobName"])
        except ScriptmodeError as error:
            # It may be deleted; what happens to it is read by its status.
            agent_log.write_line(f"{job['TrainingJobName']} cannot be stopped: {error}")

    def _suggest(self) -> None:
        """Record the next training job."""
        name = training_job_name(self._folder.name, self._identity, len(self._jobs))
        job = {
            "TrainingJobName": name,
            "TrainingJobArn": f"{self._record.arn.rpartition(':')[0]}:training-job/{name}",
            "TrainingJobStatus": "InProgress",
            "TunedHyperParameters": self._search.suggest(),
            "ObjectiveStatus": "Pending",
        }
        if definition := self._request[tuning.DEFINITION].get("DefinitionName"):
            job["TrainingJobDefinitionName"] = definition
        self._jobs.append(job)

    def _create(self, number: int) -> None:
        """Create a recorded training job; one that is refused has failed, and is not listed."""
        job = self._jobs[number]
        try:
            # An earlier agent may have created it.
            with suppress(JobExistsError):
                self._platform.create(self._training_request(job))
        except ScriptmodeError as error:
            agent_log.write_line(f"{job['TrainingJobName']} cannot be created: {error}")
            self._fail(number, str(error))
        else:
            job["CreationTime"] = time.time()

    def _training_request(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request of a training job.

        A model_dir in the directory of the tuning job is changed to one in the directory of the training job: in the
        directory of jobs every directory is that of a training job.
        """
        name = job["TrainingJobName"]
        request = tuning.training_request(self._request, name, job["TunedHyperParameters"])
        output, parameters = request["OutputDataConfig"]["S3OutputPath"], request["HyperParameters"]
        shared, own = (derived_model_dir(output, owner, with_mpi=False) for owner in (self._folder.name, name))
        is_shared = parameters.get(contract.MODEL_DIR_PARAMETER) == contract.encode(shared)
        if is_shared and output == f"{file_uris.SCHEME}{self._store.jobs}":
            parameters[contract.MODEL_DIR_PARAMETER] = contract.encode(own)
        return request

    def _end(self) -> None:
        if self._has_any_objective or self._is_limited:
            status = STOPPED if self._is_stopping else COMPLETED
        else:
            status = FAILED
            failure = readable(self._describe_fruitless())
            self._state["FailureReason"] = contract.shorten(failure, contract.FAILURE_LIMIT)
        self._state.update(HyperParameterTuningJobStatus=status, HyperParameterTuningEndTime=time.time())
        while not self._save():
            SYSTEM.sleep(_POLL_SECONDS)

    def _save(self) -> bool:
        """Write the state if it changed; return whether the record is up to date, or is deleted."""
        if self._state != self._saved:
            self._state["LastModifiedTime"] = time.time()
            try:
                self._folder.write_state(self._state)
            except OSError as error:
                if not self._folder.is_deleted:
                    agent_log.write_line(f"the state cannot be written: {error}")
                    return False
            self._saved = copy.deepcopy(self._state)
        return True


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
    state = folder.read_state()
    for job in state["TrainingJobs"]:
        if job["TrainingJobStatus"] not in ENDED:
            job.update(TrainingJobStatus=STOPPED, ObjectiveStatus="Failed", TrainingEndTime=time.time())
            # The platform's package may be gone.
            with suppress(ScriptmodeError, ImportError, AttributeError):
                _create_platform(folder.read_record().platform).stop(job["TrainingJobName"])
    reason = readable(f"InternalServerError: {type(error).__name__}: {error}; see {folder.agent_log}")
    state["FailureReason"] = contract.shorten(reason, contract.FAILURE_LIMIT)
    ended = dict.fromkeys(("LastModifiedTime", "HyperParameterTuningEndTime"), time.time())
    folder.write_state({**state, **ended, "HyperParameterTuningJobStatus": FAILED})
