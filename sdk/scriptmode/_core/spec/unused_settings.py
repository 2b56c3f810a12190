"""Settings of a job that have no effect on its hosts. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode._core.spec.hosts import LOCAL_PROCESS, LOCAL_ROLE
from scriptmode._core.spec.training_job import Resources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode._core.spec.job_request import JobRequest

#: The script's variables that the launcher sets for each job, in place of those of the same names.
LAUNCHER_VARIABLES = frozenset(
    {
        "SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_CPUS", "SM_NUM_GPUS", "SM_NUM_NEURONS", "SM_NETWORK_INTERFACE_NAME",
        "SM_CURRENT_INSTANCE_TYPE", "SM_CURRENT_INSTANCE_GROUP", "SM_CURRENT_INSTANCE_GROUP_HOSTS",
        "SM_INSTANCE_GROUPS", "SM_INSTANCE_GROUPS_DICT", "SM_DISTRIBUTION_INSTANCE_GROUPS", "SM_IS_HETERO",
        "SM_RESOURCE_CONFIG", "SM_TRAINING_ENV", "SM_HPS", "SM_USER_ARGS", "SM_USER_ENTRY_POINT", "SM_MODULE_NAME",
        "SM_MODULE_DIR", "SM_LOG_LEVEL", "SM_FRAMEWORK_PARAMS", "SM_FRAMEWORK_MODULE", "SM_INPUT_DATA_CONFIG",
        "SM_CHANNELS", "SM_INPUT_DIR", "SM_INPUT_CONFIG_DIR", "SM_OUTPUT_DIR", "SM_OUTPUT_DATA_DIR",
        "SM_OUTPUT_INTERMEDIATE_DIR", "SM_MODEL_DIR", "SAGEMAKER_JOB_NAME", "SAGEMAKER_REGION", "CURRENT_HOST",
    }
)  # fmt: skip
#: Arguments that pass to the request although the caller left them out.
_WITH_A_DEFAULT = {"enable_sagemaker_metrics"}


def unused_settings(job: JobRequest) -> Iterator[str]:
    """Yield a sentence for each setting that was given and has no effect."""
    kind, image = job.resources.host_kind, job.algorithm.image_uri
    if image and not kind.runs_images:
        yield f"image_uri {image} is not used: hosts of {LOCAL_PROCESS!r} are processes of this machine"
    if kind.is_local:
        role = (job.role or "").rpartition("/")[2]
        if role not in ("", LOCAL_ROLE):
            yield f"role {role} is not used: jobs of {kind.place} have the rights of the user who starts them"
        if job.resources.volume_size != Resources.volume_size:
            disks = "the nodes' own disks" if kind.is_scheduled else "this machine's own disks"
            yield f"volume_size {job.resources.volume_size} is not used: the hosts have {disks}"
        for name in sorted(job.plain_fields.keys() - _WITH_A_DEFAULT):
            yield f"{name} is not used: it is for Amazon SageMaker's own hosts"
    own = [f"SM_CHANNEL_{channel.name}".upper() for channel in job.channels]
    own += [f"SM_HP_{name}".upper() for name in job.hyperparameters]
    for name in sorted({*LAUNCHER_VARIABLES, *own} & job.environment.keys()) if job.program else ():
        yield f"environment variable {name} is not used: the launcher sets its own on each host"
