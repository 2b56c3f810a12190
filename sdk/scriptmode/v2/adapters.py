"""Names of the SageMaker SDK v2 that scriptmode has in another form: functions that take v2's arguments."""

from __future__ import annotations

import random
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import scriptmode
from scriptmode._core.aws.images import look_up_image, look_up_rule_image
from scriptmode._core.spec.names import NAME_LIMIT
from scriptmode.errors import NotIncludedError, TrainingJobStopped, invalid


class Estimator(scriptmode.Estimator):
    """The estimator, and the base class of the others; its ``attach`` waits for the job."""

    @classmethod
    def attach(
        cls, training_job_name: str, sagemaker_session: Any = None, model_channel_name: str = "model", **where: Any
    ) -> scriptmode.Estimator:
        """Return an estimator of a job after its end, and print its statuses meanwhile; raise where it failed."""
        estimator = super().attach(training_job_name, sagemaker_session, **where)
        with suppress(TrainingJobStopped):
            estimator.sagemaker_session.wait_for_job(training_job_name, poll=estimator.platform.poll_seconds)
        return estimator


class TensorFlow(Estimator, scriptmode.TensorFlow):
    """The estimator of TensorFlow scripts."""


class Framework(Estimator):
    """The base class of a program's own estimators, which takes the arguments of the script first."""

    def __init__(self, entry_point: str, source_dir: Any = None, hyperparameters: Any = None, **named: Any) -> None:
        super().__init__(entry_point=entry_point, source_dir=source_dir, hyperparameters=hyperparameters, **named)


def LocalSession(boto_session: Any = None, **arguments: Any) -> scriptmode.Session:  # noqa: N802 - a class in v2
    """Return a session of this machine, or one of the account of ``boto_session``."""
    return scriptmode.Session(boto_session, local_mode=None if boto_session else True, **arguments)


def TrainingJobAnalytics(  # noqa: N802 - a class in v2
    training_job_name: str, metric_names: Collection[str] | None = None, sagemaker_session: object = None
) -> Any:
    """Return the metrics of a training job, with ``dataframe()``."""
    return scriptmode.TrainingJob.attach(training_job_name, sagemaker_session).analytics(metric_names)


def HyperparameterTuningJobAnalytics(  # noqa: N802 - a class in v2
    hyperparameter_tuning_job_name: str, sagemaker_session: object = None
) -> Any:
    """Return the training jobs of a tuning job, with ``dataframe()``."""
    return scriptmode.Tuner.attach(hyperparameter_tuning_job_name, sagemaker_session).analytics()


def name_from_base(base: str, max_length: int = NAME_LIMIT, *, short: bool = False) -> str:
    """Return a name that begins with ``base`` and ends with the time, to the second or with ``short`` to the minute."""
    end = f"{datetime.now(tz=timezone.utc):%y%m%d-%H%M}" if short else sagemaker_timestamp()
    return f"{base[: max_length - len(end) - 1]}-{end}"


def unique_name_from_base(base: str, max_length: int = NAME_LIMIT) -> str:
    """Return a name that begins with ``base`` and ends with the time and random digits."""
    end = f"{int(datetime.now(tz=timezone.utc).timestamp())}-{random.randrange(16**4):04x}"  # noqa: S311 - a name
    return f"{base[: max_length - len(end) - 1]}-{end}"


def sagemaker_timestamp() -> str:
    """Return the time in UTC to the millisecond, as job names have it."""
    now = datetime.now(tz=timezone.utc)
    return f"{now:%Y-%m-%d-%H-%M-%S}-{now.microsecond // 1000:03d}"


def retrieve(
    framework: str,
    region: str,
    version: str | None = None,
    py_version: str | None = None,
    instance_type: str | None = None,
    *,
    image_scope: str = "training",
    **_: object,
) -> str:
    """Return the URI of AWS's TensorFlow training image, or with ``debugger`` as framework that of its rules.

    Raises:
        NotIncludedError: If the image is of another framework, or does not train.
        SpecError: If AWS has no such image, or ``version`` is not given.
    """
    if framework == "debugger":
        return look_up_rule_image(region)
    if framework != "tensorflow" or image_scope not in (None, "training"):
        what = f"scriptmode.v2 has images of TensorFlow that train, not {framework} for {image_scope!r}"
        raise NotIncludedError(what, "write the URI, or use the SageMaker SDK in a program of its own")
    if not version:
        raise invalid("version", f"is {version!r}", "give that of TensorFlow, such as '2.19'")
    types = [instance_type or "ml.m5.large"]
    return look_up_image(framework_version=version, py_version=py_version, region=region, instance_types=types)
