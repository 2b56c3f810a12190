"""Rows of the page's list of jobs: what ListTrainingJobs returns of each, and its hosts, tags and last metrics."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.service_values import ENDED
from scriptmode.errors import ScriptmodeError
from scriptmode.serve import request_mapping
from scriptmode.serve.aws_json import validation_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from scriptmode.platforms.local import LocalPlatform

    _Summary = Mapping[str, Any]
    _Key = tuple[str, datetime]

_FIELDS = (
    "TrainingJobName",
    "CreationTime",
    "TrainingEndTime",
    "LastModifiedTime",
    "TrainingJobStatus",
    "SecondaryStatus",
    "QueuePosition",
    "QueueEndTime",
)
#: Seconds in which a request reads jobs for their settings, and logs for metrics. The next requests read the others.
SETTING_SECONDS = METRIC_SECONDS = 0.5
#: The most rows of an answer, and their number if the request does not say.
_MAX_ROWS, _DEFAULT_ROWS = 5000, 100


class JobRows:
    """The rows of the jobs of a platform, of which what cannot change any more is kept in memory.

    Args:
        platform: The platform that has the jobs.
        changed_tags: Returns the tags of a job; None while they are those of its request.
        metrics: Returns the last value of each metric of a job, as DescribeTrainingJob has them.
    """

    def __init__(
        self,
        platform: LocalPlatform,
        changed_tags: Callable[[str], Mapping[str, str] | None],
        metrics: Callable[[str], list[dict[str, Any]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._platform = platform
        self._changed_tags = changed_tags
        self._metrics_of = metrics
        self._clock = clock
        self._lock = threading.Lock()
        #: The hosts, the tags and, as texts, the hyperparameters of the request.
        self._settings: dict[_Key, tuple[list[dict[str, Any]], Mapping[str, str], list[str]]] = {}
        #: When the metrics were read, whether the job had ended, and their values by name.
        self._metrics: dict[_Key, tuple[float, bool, dict[str, float]]] = {}

    def list_jobs(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return rows of the newest jobs that meet the filters, and the number of all that do.

        ``IsComplete`` is false while there are jobs whose hosts and tags were not read yet; the next requests do it.

        Args:
            arguments: ``Text``, whose words a job's name, instance types, tags (``KEY=VALUE``) and hyperparameters
                must contain; ``Status``; ``Most``, the most rows.
        """
        words, status = str(arguments.get("Text") or "").lower().split(), arguments.get("Status")
        most = arguments.get("Most", _DEFAULT_ROWS)
        if not isinstance(most, int) or not 1 <= most <= _MAX_ROWS:
            raise validation_error(f"Most is {most!r}; it must be from 1 to {_MAX_ROWS}.")
        with self._lock:
            known = [job for job in self._platform.list() if job["TrainingJobArn"]]
            self._forget({_key(job) for job in known})
            found = [job for job in known if status in (None, "", job["TrainingJobStatus"])]
            is_complete = True
            if words:
                is_complete = self._read_settings(found, words)
                found = [job for job in found if self._has_words(job, words)]
            is_complete = self._read_settings(found[:most]) and is_complete
            self._read_metrics(found[:most])
            rows = [self._row(job) for job in found[:most]]
            return {"Jobs": rows, "Count": len(found), "IsComplete": is_complete}

    def _row(self, job: _Summary) -> dict[str, Any]:
        row = {field: job[field] for field in _FIELDS if field in job}
        metrics = self._metrics.get(_key(job))
        return {**row, "Hosts": self._find_settings(job)[0], "Tags": self._tags(job), "Metrics": metrics and metrics[2]}

    def _has_words(self, job: _Summary, words: Sequence[str]) -> bool:
        hosts, _, parameters = self._find_settings(job)
        texts = [job["TrainingJobName"], *(each["InstanceType"] for each in hosts), *parameters]
        texts += (f"{key}={value}" for key, value in self._tags(job).items())
        text = "\n".join(texts).lower()
        return all(word in text for word in words)

    def _read_settings(self, jobs: Sequence[_Summary], words: Sequence[str] = ()) -> bool:
        """Read the hosts and the tags of jobs whose names do not have the words; return whether there was time for all.

        Those of a job that cannot be read are read again by the next request.
        """
        deadline = self._clock() + SETTING_SECONDS
        for job in jobs:
            key, name = _key(job), job["TrainingJobName"]
            if key in self._settings or (words and all(word in name.lower() for word in words)):
                continue
            if self._clock() > deadline:
                return False
            with suppress(ScriptmodeError, OSError):
                description = self._platform.describe(name)
                tags = dict(description.job.tags)
                described = request_mapping.to_described(description.response, tags)
                resources = described["ResourceConfig"]
                # Texts are JSON: "adam".
                parameters = [
                    f"{key}={value}".replace('"', "")
                    for key, value in described.get("HyperParameters", {}).items()
                    if not key.startswith("sagemaker_")
                ]
                groups = resources.get("InstanceGroups") or ([resources] if resources else [])
                hosts = [{field: each[field] for field in ("InstanceType", "InstanceCount")} for each in groups]
                self._settings[key] = hosts, request_mapping.without_own_tags(tags), parameters
        return True

    def _find_settings(self, job: _Summary) -> tuple[list[dict[str, Any]], Mapping[str, str], list[str]]:
        """Return the hosts, the tags and the hyperparameters of a job's request; none of a job that was not read."""
        return self._settings.get(_key(job), ([], {}, []))

    def _tags(self, job: _Summary) -> Mapping[str, str]:
        changed = None
        with suppress(ScriptmodeError, OSError, ValueError):
            changed = self._changed_tags(job["TrainingJobName"])
        return self._find_settings(job)[1] if changed is None else changed

    def _read_metrics(self, jobs: Sequence[_Summary]) -> None:
        """Read the metrics of jobs that have new ones: first those never read, then those read longest ago.

        A job whose metrics cannot be read has none, and is read again.
        """
        read = {key: (moment, is_complete) for key, (moment, is_complete, _) in self._metrics.items()}
        due = [job for job in jobs if not read.get(_key(job), (0.0, False))[1]]
        deadline = self._clock() + METRIC_SECONDS
        for job in sorted(due, key=lambda each: read.get(_key(each), (0.0, False))[0]):
            if self._clock() > deadline:
                return
            values, has_ended = {}, False
            with suppress(ScriptmodeError, OSError, ValueError):
                values = {each["MetricName"]: each["Value"] for each in self._metrics_of(job["TrainingJobName"])}
                has_ended = job["TrainingJobStatus"] in ENDED
            self._metrics[_key(job)] = (self._clock(), has_ended, values)

    def _forget(self, present: set[_Key]) -> None:
        """Forget jobs that were deleted."""
        self._settings = {key: each for key, each in self._settings.items() if key in present}
        self._metrics = {key: each for key, each in self._metrics.items() if key in present}


def _key(job: _Summary) -> _Key:
    return job["TrainingJobName"], job["CreationTime"]
