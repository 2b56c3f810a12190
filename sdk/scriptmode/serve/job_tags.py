"""The tags of training jobs: those of the request, until a client changes them. Then a file of the job has them all."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING

from scriptmode.data import regular_files
from scriptmode.errors import JobNotFoundError
from scriptmode.platforms.local.system.durable import replace_file
from scriptmode.serve.aws_json import ApiError, not_found_error, validation_error
from scriptmode.serve.request_mapping import PREFIX, without_own_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scriptmode.platforms.local import LocalPlatform

_FILE = "tags.json"
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:training-job/([a-zA-Z0-9-]{1,63})")
#: The most tags of a resource (AddTags, API reference).
_MOST = 50


class JobTags:
    """The tags of the training jobs of a platform.

    Args:
        platform: The platform that has the jobs.
    """

    def __init__(self, platform: LocalPlatform) -> None:
        self._platform = platform
        self._lock = threading.Lock()

    def read(self, arn: str) -> dict[str, str]:
        """Return the tags of a job by its ARN; raise `ApiError`."""
        return self._read(self._job_name(arn))

    def add(self, arn: str, tags: Mapping[str, str]) -> dict[str, str]:
        """Add tags, which replace those of the same keys; return all of them."""
        if own := [key for key in tags if key.startswith(PREFIX)]:
            raise validation_error(f"The tag key '{own[0]}' is reserved: keys cannot begin with '{PREFIX}'.")
        return self._change(arn, lambda before: {**before, **tags})

    def remove(self, arn: str, keys: list[str]) -> None:
        """Remove tags by their keys; those that the job does not have are skipped."""
        self._change(arn, lambda before: {key: value for key, value in before.items() if key not in keys})

    def _change(self, arn: str, change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
        name = self._job_name(arn)
        with self._lock:
            tags = change(self._read(name))
            if len(tags) > _MOST:
                raise ApiError("ResourceLimitExceeded", f"A resource has at most {_MOST} tags.")
            folder = self._folder(name)
            folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(folder / _FILE, json.dumps(tags).encode())
        return tags

    def _read(self, name: str) -> dict[str, str]:
        path = self._folder(name) / _FILE
        try:
            content = regular_files.read_json(path)
            return {str(key): str(value) for key, value in content.items()}
        except FileNotFoundError:
            return without_own_tags(self._platform.tags({"TrainingJobName": name}))

    def _folder(self, name: str) -> Path:
        try:
            return self._platform.server_folder(name)
        except JobNotFoundError as error:
            raise not_found_error() from error

    @staticmethod
    def _job_name(arn: str) -> str:
        found = _ARN.fullmatch(arn)
        if found is None:
            raise validation_error(f"'{arn}' is not the ARN of a training job.")
        return found[1]
