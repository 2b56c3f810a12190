"""A case of the matrix: one call of an estimator as data, for whichever package makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROLE = "arn:aws:iam::123456789012:role/training"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/trainer:1"
#: The job's name in every case that does not leave it to the estimator.
JOB = "job-1"
#: What a case says in ``arguments`` to take back one of `BASE`.
LEFT_OUT = "<left out>"
BASE = {
    "image_uri": IMAGE, "role": ROLE, "instance_count": 1, "instance_type": "ml.m5.xlarge",
    "output_path": "s3://bucket/output",
}  # fmt: skip
SCRIPT = {"entry_point": "train.py", "source_dir": "code"}


@dataclass(frozen=True, eq=False)
class Made:
    """A value that is made with a class of the package that runs: ``Made("TrainingInput", ("s3://b/x",), {})``."""

    name: str
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


class Maker:
    """Reads in the matrix as the class that it stands for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *positional: Any, **named: Any) -> Made:
        return Made(self._name, positional, named)


@dataclass(frozen=True)
class Case:
    """``estimator`` is "Estimator" or "TensorFlow"; ``config`` the SageMaker config file; ``fit`` its other arguments."""

    id: str
    estimator: str
    arguments: dict[str, Any]
    inputs: Any = "s3://bucket/data"
    fit: dict[str, Any] = field(default_factory=lambda: {"job_name": JOB})
    config: dict[str, Any] | None = None

    def constructor(self) -> dict[str, Any]:
        merged = {**BASE, **self.arguments}
        return {name: value for name, value in merged.items() if value is not LEFT_OUT}


def image(name: str, arguments: dict[str, Any], **rest: Any) -> Case:
    """An image that brings its own program."""
    return Case(f"image: {name}", "Estimator", arguments, **rest)


def script(name: str, arguments: dict[str, Any], **rest: Any) -> Case:
    """A script in any image."""
    return Case(f"script: {name}", "Estimator", {**SCRIPT, **arguments}, **rest)


def tensorflow(name: str, arguments: dict[str, Any], **rest: Any) -> Case:
    """A script in a TensorFlow image."""
    return Case(f"TensorFlow: {name}", "TensorFlow", {**SCRIPT, **arguments}, **rest)


def every_kind(name: str, arguments: dict[str, Any], **rest: Any) -> list[Case]:
    return [kind(name, arguments, **rest) for kind in (image, script, tensorflow)]


def build(value: Any, namespace: Any, made: dict[int, Any]) -> Any:
    """Make what ``value`` describes with ``namespace``'s classes; one `Made` is one object, through ``made``."""
    if isinstance(value, Made):
        if id(value) not in made:
            maker: Any = namespace
            for part in value.name.split("."):
                maker = getattr(maker, part)
            positional = build(list(value.positional), namespace, made)
            made[id(value)] = maker(*positional, **build(value.named, namespace, made))
        return made[id(value)]
    if isinstance(value, dict):
        return {key: build(each, namespace, made) for key, each in value.items()}
    if isinstance(value, list):
        return [build(each, namespace, made) for each in value]
    return value
