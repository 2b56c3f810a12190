"""Amazon SageMaker through boto3. Errors of the services are translated to those of `scriptmode.errors`.

Not public. Sessions, roles, registries and boto3's errors are in `scriptmode.core.aws`.

* ``sagemaker_platform``: `SageMakerPlatform`, the platform protocol by calls of Amazon SageMaker and S3.
* ``job_defaults``: completes a job from the config file, the role and the image look-up.
* ``cloudwatch_logs``, ``cloudwatch_metrics``: the log lines and the metrics of a job.
* ``host_secret``: the secret that the hosts of a job share.
"""

from __future__ import annotations

from scriptmode.core.platforms.sagemaker.sagemaker_platform import SageMakerPlatform

__all__ = ["SageMakerPlatform"]
