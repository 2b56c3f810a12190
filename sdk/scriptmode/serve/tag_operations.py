"""Amazon SageMaker's operations on tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.serve import paging
from scriptmode.serve.job_tags import JobTags, TaggedJobs
from scriptmode.serve.training_jobs import translated_errors, validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.platforms.local.tuning.tuning_service import LocalTuning
    from scriptmode.serve.training_jobs import Operation

#: The tags of a page if the call does not say (ListTags, API reference).
_TAGS_OF_PAGE = 50


class TagOperations:
    """The operations on the tags of training jobs and tuning jobs.

    Args:
        platform: The platform that has the training jobs.
        tuning: Its tuning jobs.
    """

    def __init__(self, platform: LocalPlatform, tuning: LocalTuning) -> None:
        self._tags = JobTags(
            {
                "training-job": TaggedJobs(platform.server_folder, lambda name: platform.tags(platform.describe(name))),
                "hyper-parameter-tuning-job": TaggedJobs(tuning.server_folder, tuning.tags),
            }
        )
        self.operations: dict[str, Operation] = {
            "AddTags": self._add_tags,
            "ListTags": self._list_tags,
            "DeleteTags": self._delete_tags,
        }

    def _add_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("AddTagsInput", arguments)
        with translated_errors():
            tags = self._tags.add(arguments["ResourceArn"], {tag["Key"]: tag["Value"] for tag in arguments["Tags"]})
        return {"Tags": _tag_list(tags)}

    def _list_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListTagsInput", arguments)
        with translated_errors():
            tags = _tag_list(self._tags.read(arguments["ResourceArn"]))
        sized = {"MaxResults": _TAGS_OF_PAGE, **arguments}
        shown, more = paging.page(tags, sized, key="Key", name="Key")
        return {"Tags": shown, **more}

    def _delete_tags(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DeleteTagsInput", arguments)
        with translated_errors():
            self._tags.remove(arguments["ResourceArn"], arguments["TagKeys"])
        return {}


def _tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
