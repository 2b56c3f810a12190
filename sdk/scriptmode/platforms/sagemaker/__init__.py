"""Amazon SageMaker through boto3; every error of the service leaves as one of ours."""

from __future__ import annotations

from scriptmode.platforms.sagemaker.sagemaker_platform import SageMakerPlatform

__all__ = ["SageMakerPlatform"]
