"""Amazon SageMaker through boto3. Errors of the services are translated to those of `scriptmode.errors`."""

from scriptmode._core.platforms.sagemaker.sagemaker_platform import SageMakerPlatform

__all__ = ["SageMakerPlatform"]
