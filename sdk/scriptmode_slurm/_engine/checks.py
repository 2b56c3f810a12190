"""The check of a Slurm cluster: whether its nodes share files and programs with this machine."""

from __future__ import annotations

import os
import sys

from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode.errors import PlatformError, TransientError
from scriptmode_local._store import data_dir_checks
from scriptmode_slurm._engine import commands, problems
from scriptmode_slurm._engine.settings import parse_settings

#: Runs on a node: copies what this machine wrote.
_PROGRAM = """\
import pathlib, sys, scriptmode_runtime
folder = pathlib.Path(sys.argv[1])
(folder / "copy").write_text((folder / "token").read_text())
"""
#: Seconds for which the step waits for a free node, and srun's words if there is none.
_WAIT_SECONDS, _BUSY = 15, ("nodes are busy", "Immediate execution impossible")
#: Options that a step needs to be allowed to run.
_OPTIONS = ("partition", "account", "qos", "reservation", "constraint", "wckey")


def share_files() -> str:
    """Run a step in the partition of ``SCRIPTMODE_SLURM``, else the default one, which writes a file."""
    settings = parse_settings({}, os.environ)
    partition = str(settings.options.get("partition", ""))
    where = f"partition {partition}" if partition else "the default partition"
    own = settings.options_of(partition)
    options = [f"--{name}={own[name]}" for name in _OPTIONS if name in own]
    data_dir = default_data_dir()
    advice = f"name a directory that all nodes share in {DATA_DIR_VARIABLE}, and install scriptmode in another"
    with drafts.new_directory(data_dir_checks.existing_folder(data_dir)) as folder:
        (folder / "token").write_text("", encoding="utf-8")
        try:
            commands.run_step(options, (sys.executable, "-c", _PROGRAM, str(folder)), _WAIT_SECONDS)
        except PlatformError as error:
            if problems.mentions(error.message, _BUSY):
                return f"{where}: {error.message}"
            # A refusal of Slurm says nothing of the directory, and no answer neither.
            is_refused = "Unable to allocate resources" in error.message or isinstance(error, TransientError)
            shown = error.advice if is_refused or error.argument else advice
            raise PlatformError(f"{where}: {error.message}", shown) from error
        if not (folder / "copy").exists():
            raise PlatformError(f"this machine does not see what a node of {where} wrote to {data_dir}", advice)
    return f"a node of {where} can use {data_dir} and {sys.executable}"


#: By the names of the checks.
CHECKS = {"Slurm": share_files}
