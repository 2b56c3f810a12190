"""The software that hosts on this machine run: the image of containers, the interpreter of processes."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.errors import PlatformError, SpecError, invalid
from scriptmode.installation import install_command
from scriptmode.spec.hosts import LOCAL_GPU

if TYPE_CHECKING:
    from scriptmode.spec.training_job import TrainingJobSpec

#: The oldest interpreter that the runtime works with.
_OLDEST_PYTHON = (3, 9)


def image_of(spec: TrainingJobSpec) -> str:
    """Return the image of hosts that are containers: the spec's, else the one that this project builds."""
    algorithm = spec.algorithm
    if algorithm.image_uri is not None:
        return algorithm.image_uri
    if spec.script is None:
        raise invalid(
            "image_uri", "and entry_point are missing", "give an image, or a script to run in this project's image"
        )
    if LOCAL_GPU in spec.resources.types:
        raise invalid(
            "image_uri",
            "is missing",
            f"{LOCAL_GPU!r} needs an image for GPUs; give one, or build it from one with CUDA: "
            "scriptmode image build --gpu --base ...",
        )
    from scriptmode.containers.image_recipe import PY_VERSION
    from scriptmode.containers.training_images import default_image

    try:
        image = default_image(algorithm.framework_version)
    except SpecError as error:
        tag = f"{algorithm.framework_version}-cpu-{algorithm.py_version or 'py310'}"
        raise SpecError(
            f"{error}",
            argument="framework_version",
            advice="give image_uri= for AWS's image of it, its URI in Amazon ECR, from where your AWS credentials "
            f"pull it: '<account>.dkr.ecr.<region>.amazonaws.com/tensorflow-training:{tag}'",
        ) from error
    if algorithm.py_version not in (None, "py3", PY_VERSION):
        raise invalid(
            "py_version",
            f"is {algorithm.py_version!r}, but {image}, this project's image, has {PY_VERSION!r}",
            "leave py_version out, or give image_uri",
        )
    return image


def find_interpreter(program: str | None) -> str:
    """Return the path of the hosts' interpreter, by default this one; raise `PlatformError` if it cannot run them."""
    if program is None:
        return sys.executable
    found = shutil.which(Path(program).expanduser())
    if found is None:
        raise PlatformError(
            f"python is {program!r}, which is not a program that can be run", advice="correct LocalPlatform(python=...)"
        )
    # Not resolved, because the interpreter of a virtual environment is a link to the one that created it.
    python = str(Path(found).absolute())
    if python == sys.executable:
        return python
    from scriptmode.platforms.local.hosts.process_host import check_import, python_version

    try:
        check_import(python, "scriptmode_runtime")
    except ImportError as error:
        version = python_version(python)
        if (0, 0) < version < _OLDEST_PYTHON:
            raise PlatformError(
                "{} cannot run training hosts: it is Python {}.{}".format(python, *version),
                advice="give Python {}.{} or later as LocalPlatform(python=...)".format(*_OLDEST_PYTHON),
            ) from error
        advice = f"install scriptmode for it: {install_command(python=python)}"
        raise PlatformError(f"{python} cannot run training hosts: {error}", advice=advice) from error
    return python


def check_python(wanted: str, python: str) -> None:
    """Raise `SpecError` if the hosts' interpreter is not the version that ``py311`` or ``py3`` names."""
    from scriptmode.platforms.local.hosts.process_host import python_version

    major, minor = sys.version_info[:2] if python == sys.executable else python_version(python)
    if wanted not in (f"py{major}", f"py{major}{minor}"):
        raise invalid(
            "py_version",
            f"is {wanted!r}, but hosts that are processes run with {python}, which is Python {major}.{minor}",
            "leave it out, or give LocalPlatform(python=...)",
        )


def check_tensorflow(wanted: str, python: str) -> None:
    """Raise `SpecError` if the hosts' interpreter has another version of TensorFlow."""
    from importlib import metadata

    names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
    found: list[str] = []
    if python != sys.executable:
        from scriptmode.platforms.local.hosts.process_host import versions

        found = versions(python, names)
    for name in names if python == sys.executable else ():
        with suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name))
    if not any(version == wanted or version.startswith(f"{wanted}.") for version in found):
        raise invalid(
            "framework_version",
            f"is {wanted!r}, but hosts that are processes run with {python}, which has "
            f"{'TensorFlow ' + ' and '.join(found) if found else 'no TensorFlow'}",
            "leave it out, or give LocalPlatform(python=...)",
        )
