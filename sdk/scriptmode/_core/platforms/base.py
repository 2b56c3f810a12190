"""The type of a training platform, which takes and returns the values of `scriptmode._core.spec`.

A platform is a training service: it answers CreateTrainingJob, DescribeTrainingJob and the rest. A job is a value here;
lists, tuning jobs and the response of a description have Amazon SageMaker's shapes. There are two,
``platforms.sagemaker`` and ``platforms.local``; ``platforms.registry`` chooses between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from scriptmode._core.platforms.sagemaker import SageMakerPlatform
    from scriptmode_local import LocalPlatform

#: Both have the methods that the SDK calls, which raise only errors of `scriptmode.errors`.
Platform = Union["SageMakerPlatform", "LocalPlatform"]
