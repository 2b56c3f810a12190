"""The tags of training jobs and tuning jobs.

They are those of the request until a client changes them. Then a file of the job has all of them.
"""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.data import regular_files
from scriptmode.platforms.local.system.durable import replace_file
from scriptmode.serve.aws_json import ApiError, validation_error
from scriptmode.serve.request_mapping import PREFIX, without_own_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_FILE = "tags.json"
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:([a-z-]+)/([a-zA-Z0-9-]{1,63})")
#: The most tags of a resource (AddTags, API reference).
_MOST = 50


class TaggedJobs(NamedTuple):
    """Jobs of one kind: what finds a job's folder, and the tags that it was created with."""

    folder: Callable[[str], Path]
    tags: Callable[[str], Mapping[str, str]]


class JobTags:
    """The tags of jobs.

    Args:
        jobs: The jobs by their kind in an ARN.
    """

    def __init__(self, jobs: Mapping[str, TaggedJobs]) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()

    def read(self, arn: str) -> dict[str, str]:
        """Return the tags of a job by its ARN; raise `ApiError`."""
        jobs, name = self._find(arn)
        return self._read(jobs, name)

    def add(self, arn: str, tags: Mapping[str, str]) -> dict[str, str]:
        """Add tags, which replace those of the same keys; return all of them."""
        if own := [key for key in tags if key.startswith(PREFIX)]:
            raise validation_error(f"The tag key '{own[0]}' is reserved: keys cannot begin with '{PREFIX}'.")
        return self._change(arn, lambda before: {**before, **tags})

    def remove(self, arn: str, keys: list[str]) -> None:
        """Remove tags by their keys; those that the job does not have are skipped."""
        self._change(arn, lambda before: {key: value for key, value in before.items() if key not in keys})

    def _change(self, arn: str, change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
        jobs, name = self._find(arn)
        with self._lock:
            tags = change(self._read(jobs, name))
            if len(tags) > _MOST:
                raise ApiError("ResourceLimitExceeded", f"A resource has at most {_MOST} tags.")
            folder = jobs.folder(name)
            folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(folder / _FILE, json.dumps(tags).encode())
        return tags

    @staticmethod
    def _read(jobs: TaggedJobs, name: str) -> dict[str, str]:
        try:
            content = regular_files.read_json(jobs.folder(name) / _FILE)
            return {str(key): str(value) for key, value in content.items()}
        except FileNotFoundError:
            return without_own_tags(jobs.tags(name))

    def _find(self, arn: str) -> tuple[TaggedJobs, str]:
        found = _ARN.fullmatch(arn)
        if found is None or found[1] not in self._jobs:
            kinds = " or ".join(self._jobs)
            raise validation_error(f"'{arn}' is not the ARN of a {kinds}.")
        return self._jobs[found[1]], found[2]
