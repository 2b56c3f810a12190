"""Amazon SageMaker through boto3. Errors of the services are translated to those of `scriptmode.errors`.

Not public. Sessions, roles, registries and boto3's errors are in `scriptmode._core.aws`.
"""

from scriptmode._core.platforms.sagemaker.sagemaker_platform import SageMakerPlatform

__all__ = ["SageMakerPlatform"]
