"""Amazon SageMaker's operations on the tags of training jobs and tuning jobs.

The tags are those of the request until a client changes them. Then a file of the job has all of them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

from scriptmode.errors import DataError, JobNotFoundError
from scriptmode_local import LocalPlatform
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._tuning.tuning_service import LocalTuning
from scriptmode_serve._operations import paging
from scriptmode_serve._operations.aws_json import ApiError, Operation, validation_error
from scriptmode_serve._operations.request_errors import validate
from scriptmode_serve._operations.request_mapping import check_tags, without_own_tags
from scriptmode_serve._operations.training_jobs import translated_errors

#: Of jobs of one kind: what finds a job's folder, and the tags that it was created with.
TaggedJobs = tuple[Callable[[str], Path], Callable[[str], Mapping[str, str]]]
_FILE = "tags.json"
_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:([a-z-]+)/([a-zA-Z0-9-]{1,63})")
#: The most tags of a resource (AddTags, API reference).
_MOST = 50


class TagOperations:
    """The operations on the tags of the training jobs of a platform, and of its tuning jobs."""

    def __init__(self, platform: LocalPlatform, tuning: LocalTuning) -> None:
        #: By the kind of job in an ARN.
        self._jobs: dict[str, TaggedJobs] = {
            "training-job": (platform.server_folder, lambda name: dict(platform.record(name).request.tags)),
            "hyper-parameter-tuning-job": (tuning.server_folder, tuning.tags),
        }
        self._lock = threading.Lock()
        self.operations: dict[str, Operation] = {
            "AddTags": self._add_tags,
            "ListTags": self._list_tags,
            "DeleteTags": self._delete_tags,
        }

    def of_training_job(self, name: str) -> dict[str, str]:
        """Return the tags of a training job, none of one that was deleted meanwhile; raise `ApiError`."""
        with translated_errors(), suppress(JobNotFoundError):
            return _read(self._jobs["training-job"], name)
        return {}

    def _add_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("AddTagsInput", arguments)
        check_tags(arguments["Tags"])
        added = {tag["Key"]: tag["Value"] for tag in arguments["Tags"]}
        tags = self._change(arguments["ResourceArn"], lambda before: {**before, **added})
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _list_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListTagsInput", arguments)
        with translated_errors():
            tags = _read(*self._find(arguments["ResourceArn"]))
        return paging.list_tags(tags, arguments)

    def _delete_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DeleteTagsInput", arguments)
        # Keys that the job does not have are skipped.
        keys = arguments["TagKeys"]
        self._change(
            arguments["ResourceArn"], lambda before: {key: value for key, value in before.items() if key not in keys}
        )
        return {}

    def _change(self, arn: str, change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
        with translated_errors(), self._lock:
            jobs, name = self._find(arn)
            tags = change(_read(jobs, name))
            if len(tags) > _MOST:
                raise ApiError("ResourceLimitExceeded", f"A resource has at most {_MOST} tags.")
            folder = jobs[0](name)
            folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(folder / _FILE, regular_files.render_json(tags))
        return tags

    def _find(self, arn: str) -> tuple[TaggedJobs, str]:
        match = _ARN.fullmatch(arn)
        if match is None or match[1] not in self._jobs:
            raise validation_error(f"'{arn}' is not the ARN of a {' or '.join(self._jobs)}.")
        return self._jobs[match[1]], match[2]


def _read(jobs: TaggedJobs, name: str) -> dict[str, str]:
    find_folder, first_tags = jobs
    file = find_folder(name) / _FILE
    try:
        content = regular_files.read_json(file)
    except FileNotFoundError:
        return without_own_tags(first_tags(name))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise DataError(f"{file} is not a JSON object", "delete it for the tags of the request")
    return {str(key): str(value) for key, value in content.items()}
