"""AWS's own TensorFlow images: which they are, and what a job cannot ask of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scriptmode._core.spec.distribution import MultiWorkerMirrored, ParameterServer
from scriptmode._core.spec.training_job import TrainingJobSpec
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

#: The images that train, in AWS's registries and in its public one.
_IMAGE = re.compile(
    r"(?:(?P<account>\d{12})\.dkr\.ecr[a-z0-9.-]+|public\.ecr\.aws/deep-learning-containers)/"
    r"(?:tensorflow-training|sagemaker-tensorflow(?:-scriptmode)?)(?::(?P<major>\d+)\.(?P<minor>\d+)[.\w-]*)?(?:@.*)?"
)
#: The options of distributions that AWS's `train` knows.
_KNOWN_OPTIONS = ("instance_groups", "processes_per_host", "custom_mpi_options")
#: The variable that has AWS's `train` start another module, such as this project's runtime.
_MODULE = "SAGEMAKER_TRAINING_MODULE"


def check_aws_image(spec: TrainingJobSpec) -> None:
    """Raise `SpecError` for a completed job on an image of AWS's that asks for what its `train` does not know.

    A job that starts something else in the image, by an entry point or a training module of its own, is not checked.
    """
    image = spec.algorithm.image_uri or ""
    name = _IMAGE.fullmatch(image)
    if not name or spec.algorithm.container_entry_point or _MODULE in (spec.environment or {}):
        return
    from scriptmode._core.aws import image_table

    if name["account"] and name["account"] not in image_table.own_table().accounts:
        return
    if spec.script is None and contract.PROGRAM not in spec.hyperparameters:
        raise invalid("entry_point", "is missing", f"give it: AWS's image {image!r} has no program of its own to run")
    if unknown := next(_unknown(spec, name), ""):
        what = f"{unknown} is known to this project's images alone, but {image!r} is one of AWS's"
        step = "give image_uri= of one that `scriptmode image build` made and `docker push` stored, or leave it out"
        raise SpecError(
            f"{what}, whose `train` does not know it", f"{step} (guide containers.md)", argument="image_uri"
        )


def _unknown(spec: TrainingJobSpec, name: re.Match[str]) -> Iterator[str]:
    """Yield what of a job's arguments and distribution AWS's `train` does not know."""
    for key, value in vars(spec.distribution).items() if spec.distribution else ():
        if value and key not in _KNOWN_OPTIONS:
            yield f"distribution's {key}={value!r}"
    if spec.script and spec.script.arguments:
        yield f"arguments={[*spec.script.arguments]!r}, not options with one value each (hyperparameters),"
    version = (int(name["major"]), int(name["minor"])) if name["major"] else (2, 9)
    # Their adapters know it since then (SageMaker SDK).
    if isinstance(spec.distribution, MultiWorkerMirrored) and version < (2, 9):
        yield "multi_worker_mirrored_strategy before TensorFlow 2.9"
    if isinstance(spec.distribution, ParameterServer) and (groups := spec.distribution.instance_groups):
        others = {group.instance_group_name for group in spec.resources.instance_groups} - set(groups)
        if others:
            # The hosts of the other groups end with an error there.
            yield f"a parameter_server distribution that leaves out the instance groups {sorted(others)}"
