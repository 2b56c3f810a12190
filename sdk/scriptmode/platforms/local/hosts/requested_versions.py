"""The warning of hosts on this machine that have another TensorFlow or Python than a job names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.core.spec.versions import is_release_of, version_numbers
from scriptmode.core.text.tracebacks import warn_caller

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scriptmode.core.spec.training_job import Algorithm

_COMPATIBILITY = (
    ". A script for TensorFlow 1 finds its API in tensorflow.compat.v1: import tensorflow.compat.v1 as tf, and call "
    "tf.disable_v2_behavior()"
)


def warn_of_others(
    algorithm: Algorithm, hosts: str, tensorflow: Sequence[str], python: tuple[int, int], advice: str
) -> None:
    """Warn once of the hosts' versions of TensorFlow and Python, if the job names others.

    ``hosts`` is a sentence such as ``the hosts run with /usr/bin/python3``.
    """
    others = tuple(_others(algorithm, tensorflow, python))
    if not others:
        return
    named = " and ".join(name for name, _ in others)
    has = " and ".join(found for _, found in others)
    is_older = version_numbers(algorithm.framework_version or "2") < (2,)
    is_present = any(version_numbers(each) >= (2,) for each in tensorflow)
    note = _COMPATIBILITY if is_older and is_present else ""
    warn_caller(f"{named}, but {hosts}, which has {has}{note}. {advice}")


def _others(algorithm: Algorithm, tensorflow: Sequence[str], python: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Yield for each version that the hosts do not have its argument with the value, and what they have instead."""
    wanted, wanted_python = algorithm.framework_version, algorithm.py_version
    if wanted is not None and not any(is_release_of(each, wanted) for each in tensorflow):
        found = f"TensorFlow {' and '.join(tensorflow)}" if tensorflow else "no TensorFlow"
        yield f"framework_version is {wanted!r}", found
    major, minor = python
    if wanted_python is not None and wanted_python not in (f"py{major}", f"py{major}{minor}"):
        yield f"py_version is {wanted_python!r}", f"Python {major}.{minor}"
