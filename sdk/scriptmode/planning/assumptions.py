"""What is assumed of images and hosts that cannot be inspected before the job starts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scriptmode.core.aws.image_support import is_aws_image
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.text.messages import pluralize
from scriptmode_runtime import contract
from scriptmode_runtime.host.programs import Mpirun, Ssh
from scriptmode_runtime.preview import Programs

#: GPUs of a host by family and size, from DescribeInstanceTypes (Amazon EC2 API); p2 and p3, which it no longer has,
#: from "Run GPU jobs" (AWS Batch User Guide).
_ONE = dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1)
_UP_TO_EIGHT = {**_ONE, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_GPUS: dict[str, dict[str, int]] = {
    "p2": {"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "g4dn": {**_ONE, "12xlarge": 4},
    "g5": _UP_TO_EIGHT,
    "g6": _UP_TO_EIGHT,
    "g6e": _UP_TO_EIGHT,
}
#: Families without accelerators: c, m, r and t, with a generation.
_NO_GPU = re.compile(r"[cmrt]\d[a-z-]*")
#: AWS's images have Open MPI 4; this project's have the release that the lock files in ``container`` name.
_AWS_MPI, _OUR_MPI = 4, 5
_OUR_IMAGE = re.compile(r"(^|/)scriptmode[\w.-]*(:|$)")


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of an image and its hosts: as values for the runtime, and as sentences."""

    #: ``None`` for hosts that are processes of this machine, which the runtime inspects.
    machine: Programs | None
    #: By instance type.
    gpus: dict[str, int]
    #: Sentences by the subject that a plan may depend on.
    sentences: dict[str, str]


NO_ASSUMPTIONS = Assumptions(None, {}, {})


def assumptions_for(job: JobRequest, instance_types: Iterable[str]) -> Assumptions:
    """Return the assumptions on hosts that start from the image of a job."""
    image = job.algorithm.image_uri or ""
    is_ours = bool(_OUR_IMAGE.search(image))
    major = _OUR_MPI if is_ours else _AWS_MPI
    known = {each: gpu_count(each) for each in dict.fromkeys(instance_types)}
    machine = Programs("python", Mpirun("mpirun", major), Ssh("ssh", "/usr/sbin/sshd", "ssh-keygen"))
    sentences = {
        "train": "" if is_ours else _train(image),
        "mpirun": f"the image has Open MPI {major}, and mpirun on its PATH",
        "gpus": "; ".join(_gpu_words(each, count) for each, count in known.items()),
    }
    return Assumptions(machine, {each: count or 0 for each, count in known.items()}, sentences)


def _train(image: str) -> str:
    """Return the assumption on `train` in an image that does not have a name of this project's images."""
    if not is_aws_image(image):
        return f"`train` of the image {image} is scriptmode's"
    return (
        f"`train` of the image {image} is AWS's: roles and TF_CONFIG are those that it sets, the commands are those "
        "that scriptmode's `train` would start"
    )


def list_assumptions(job: JobRequest, assumptions: Assumptions, strategies: Iterable[str]) -> Iterator[str]:
    """Yield the assumptions that a plan depends on; ``strategies`` are those of its hosts."""
    parameters, how = job.hyperparameters, set(strategies)
    if not how:
        yield "the image runs its own program: the processes that it starts are unknown"
        return
    if job.algorithm.container_entry_point or job.algorithm.container_arguments:
        yield "the container's own entry point or arguments start `train` like the image's"
    needed = ["train"]
    if "mpi" in how:
        needed += ["mpirun", *([] if contract.MPI_PROCESSES_PER_HOST in parameters else ["gpus"])]
    if "parameter_server" in how and contract.PARAMETER_SERVER_COORDINATOR in parameters:
        needed.append("gpus")
    yield from (assumptions.sentences[each] for each in needed if assumptions.sentences.get(each))
    if assumptions.machine is None and how - {"single"}:
        yield "ports and the hosts' secret are chosen when the job starts: shown as 0 and ******"


def gpu_count(instance_type: str) -> int | None:
    """Return the number of GPUs of an Amazon SageMaker instance type; ``None`` if it is unknown."""
    _, family, size = (*instance_type.split("."), "", "", "")[:3]
    if instance_type == "local" or _NO_GPU.fullmatch(family):
        return 0
    return _GPUS.get(family, {}).get(size)


def vcpu_count(instance_type: str) -> int | None:
    """Return the number of vCPUs of an Amazon SageMaker instance type by its size; ``None`` if it is unknown.

    An ``xlarge`` is four of them ("Amazon EC2 instance type specifications", Amazon EC2 Instance Types Guide).
    """
    size = instance_type.rpartition(".")[2]
    sized = re.fullmatch(r"(\d*)xlarge", size)
    return int(sized[1] or 1) * 4 if sized else {"large": 2}.get(size)


def _gpu_words(instance_type: str, count: int | None) -> str:
    if count is None:
        return f"the number of GPUs of {instance_type} is unknown: shown as 0"
    return f"{instance_type} has {pluralize(count, 'GPU') if count else 'no GPUs'}"
