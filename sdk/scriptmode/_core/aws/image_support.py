"""AWS's own TensorFlow images: which they are, and what a job cannot ask of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scriptmode._core.spec.distribution import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode._core.spec.training_job import TrainingJobSpec

_PRIVATE = re.compile(r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.[a-z0-9-]+\.(?P<domain>[a-z0-9.-]+)/(?P<image>.+)")
_PUBLIC = "public.ecr.aws/deep-learning-containers/"
#: The repositories of images that train, and the version that a tag begins with.
_IMAGE = re.compile(
    r"(?:tensorflow-training|sagemaker-tensorflow(?:-scriptmode)?)(?::(?P<major>\d+)\.(?P<minor>\d+)[.\w-]*)?(?:@.*)?"
)
#: The first TensorFlow whose image has an adapter that knows multi-worker mirrored (SageMaker SDK).
_MIRRORED_SINCE = (2, 9)
#: The variable that has AWS's `train` start another module, such as this project's runtime.
_MODULE = "SAGEMAKER_TRAINING_MODULE"


def check_aws_image(spec: TrainingJobSpec) -> None:
    """Raise `SpecError` for a completed job on an image of AWS's that asks for what its `train` does not know.

    A job that starts something else in the image, by an entry point or a training module of its own, is not checked.
    """
    image = spec.algorithm.image_uri or ""
    name = _name(image)
    if name is None or spec.algorithm.container_entry_point or _MODULE in (spec.environment or {}):
        return
    if spec.script is None and contract.PROGRAM not in spec.hyperparameters:
        raise invalid("entry_point", "is missing", f"give it: AWS's image {image!r} has no program of its own to run")
    for what in _unknown(spec):
        raise SpecError(
            f"{what} is known to this project's images alone, but {image!r} is one of AWS's, whose `train` does not "
            "know it",
            "give image_uri= of one that `scriptmode image build` made and `docker push` stored "
            "(guide containers.md), or leave it out",
            argument="image_uri",
        )
    version = (int(name["major"]), int(name["minor"])) if name["major"] else None
    if isinstance(spec.distribution, MultiWorkerMirrored) and version and version < _MIRRORED_SINCE:
        raise invalid(
            "distribution",
            "'multi_worker_mirrored_strategy' is known to AWS's images from TensorFlow 2.9 on, but "
            f"{image!r} has {version[0]}.{version[1]}",
            "give a newer framework_version or image_uri",
        )


def _name(image: str) -> re.Match[str] | None:
    """Match the name and tag of an image in a registry of AWS's; None for any other image."""
    if image.startswith(_PUBLIC):
        return _IMAGE.fullmatch(image[len(_PUBLIC) :])
    private = _PRIVATE.fullmatch(image)
    if not private or not (name := _IMAGE.fullmatch(private["image"])):
        return None
    from scriptmode._core.aws import image_table

    return name if private["account"] in image_table.own_table().accounts else None


def _unknown(spec: TrainingJobSpec) -> Iterator[str]:
    """Yield what of a job's arguments and distribution AWS's `train` does not know."""
    distribution = spec.distribution
    if spec.script is not None and spec.script.arguments:
        yield f"arguments={list(spec.script.arguments)!r}, which are not options with one value each (hyperparameters),"
    if isinstance(distribution, (ParameterServer, MultiWorkerMirrored)):
        for option in ("coordinator", "chief", "evaluator", "roles", "ps"):
            value = getattr(distribution, option, None)
            if value:
                yield f"distribution's {option}={value!r}"
    if isinstance(distribution, MPI) and distribution.bind_gpus:
        yield "distribution's bind_gpus=True"
    groups = {group.instance_group_name for group in spec.resources.instance_groups}
    if isinstance(distribution, ParameterServer) and distribution.instance_groups:
        others = groups - set(distribution.instance_groups)
        if others:
            # The hosts of the other groups end with an error there.
            yield f"a parameter_server distribution that leaves out the instance groups {sorted(others)}"
