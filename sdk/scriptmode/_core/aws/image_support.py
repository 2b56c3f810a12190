"""AWS's own TensorFlow images: which they are, and what a job cannot ask of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scriptmode._core.spec.distribution import MultiWorkerMirrored
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import TrainingJobSpec

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
    options = vars(spec.distribution) if spec.distribution else {}
    unknown = [
        f"distribution's {key}={value!r}" for key, value in options.items() if value and key not in _KNOWN_OPTIONS
    ]
    if spec.script and spec.script.arguments:
        unknown.append(f"arguments={[*spec.script.arguments]!r}, not options with one value each (hyperparameters),")
    if isinstance(spec.distribution, MultiWorkerMirrored) and name["major"]:
        # Their adapters know it since TensorFlow 2.9 (SageMaker SDK).
        unknown += ["multi_worker_mirrored_strategy"] if (int(name["major"]), int(name["minor"])) < (2, 9) else []
    if unknown:
        what = f"{unknown[0]} is known to this project's images alone, but {image!r} is one of AWS's"
        step = "give image_uri= of one that `scriptmode image build` made and `docker push` stored, or leave it out"
        raise SpecError(
            f"{what}, whose `train` does not know it", f"{step} (guide containers.md)", argument="image_uri"
        )
