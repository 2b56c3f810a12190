"""The type of a training platform: Amazon SageMaker, or `scriptmode_local.LocalPlatform`; ``registry`` chooses.

A job is a value of `scriptmode._core.spec`; lists, tuning jobs and described responses have SageMaker's shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from scriptmode._core.platforms.sagemaker import SageMakerPlatform
    from scriptmode_local import LocalPlatform

#: Both have the methods that the SDK calls, which raise only errors of `scriptmode.errors`.
Platform = Union["SageMakerPlatform", "LocalPlatform"]
