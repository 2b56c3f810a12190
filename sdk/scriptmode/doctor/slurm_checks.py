"""Checks of a Slurm cluster: whether it answers, and whether its nodes share files and programs with this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scriptmode.core.machine.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode.core.text.messages import pluralize
from scriptmode.doctor.check import Check, ok, problem, warning
from scriptmode.errors import PlatformError
from scriptmode.platforms.local.store import data_dir_checks
from scriptmode.platforms.slurm import commands
from scriptmode.platforms.slurm.commands import Partition
from scriptmode.platforms.slurm.slurm_settings import SlurmSettings, parse_settings

#: Runs on a node: reads what this machine wrote, and writes it with the node's name.
_PROGRAM = """\
import pathlib, socket, sys
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
if not (folder / "token").exists():
    sys.exit(f"{socket.gethostname()} does not have {folder.parent} of this machine")
import scriptmode_runtime
(folder / name).write_text((folder / "token").read_text() + socket.gethostname())
"""
_MARK = "written by scriptmode doctor "
#: Seconds for which a step waits for a free node; a busy partition is not a problem.
_WAIT_SECONDS = 15
_MOST_STEPS = 8
#: Options that a step needs to be allowed to run.
_OPTIONS = ("account", "qos", "reservation", "constraint", "wckey")


def cluster() -> Iterator[Check]:
    """Query slurmctld for its partitions, then run one step in each of them, which writes a file for this machine."""
    settings = parse_settings({}, os.environ)
    partitions = commands.find_partitions()
    version = commands.find_config().get("SLURM_VERSION", "")
    found = f"{version} answers, with {pluralize(len(partitions), 'partition')}: {', '.join(sorted(partitions))}"
    yield ok(found) if partitions else problem(found, "ask the administrators of the cluster")
    try:
        yield _shared_files(partitions, settings)
    except OSError as error:
        advice = f"make it writable, or name another one in {DATA_DIR_VARIABLE}"
        yield problem(f"the data directory {default_data_dir()} cannot be used: {error.strerror or error}", advice)


class _Step(NamedTuple):
    """How the step of a partition ended: on a node, not at all because none was free, or with a problem."""

    partition: str
    node: str = ""
    problem: str = ""


def _shared_files(partitions: Mapping[str, Partition], settings: SlurmSettings) -> Check:
    data_dir = default_data_dir()
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=data_dir_checks.existing_folder(data_dir)) as folder:
        Path(folder, "token").write_text(_MARK, encoding="utf-8")
        with ThreadPoolExecutor(_MOST_STEPS) as pool:
            up = sorted(name for name, each in partitions.items() if each.state == "UP")
            steps = list(pool.map(lambda name: _run_step(name, Path(folder), settings), up))
    problems: dict[str, list[str]] = {}
    for step in steps:
        if step.problem:
            problems.setdefault(step.problem, []).append(step.partition)
    if problems:
        shown = "; ".join(f"{text} (partition {', '.join(names)})" for text, names in problems.items())
        advice = f"name a directory that all nodes share in {DATA_DIR_VARIABLE}, and install scriptmode in another"
        return problem(f"jobs of {data_dir} cannot run: {shown}", advice)
    busy = [step.partition for step in steps if not step.node]
    found = ", ".join(f"{step.partition} ({step.node})" for step in steps if step.node)
    found = f"{found or 'no partition'} can use {data_dir} and {sys.executable}"
    if busy:
        what = f"{found}; no node of {', '.join(busy)} was free within {_WAIT_SECONDS} s"
        return warning(what, "run scriptmode doctor again later", prevents=False)
    return ok(found)


def _run_step(partition: str, folder: Path, settings: SlurmSettings) -> _Step:
    own = settings.options_of(partition)
    options = tuple(f"--{name}={own[name]}" for name in _OPTIONS if name in own)
    command = (sys.executable, "-c", _PROGRAM, str(folder), partition)
    try:
        commands.run_step(partition, options, command, _WAIT_SECONDS)
        answer = (folder / partition).read_text(encoding="utf-8")
    except PlatformError as error:
        is_busy = "Unable to allocate resources" in error.message
        return _Step(partition, problem="" if is_busy else error.message)
    except OSError as error:
        what = f"this machine does not see what a node wrote to {folder.parent}: {error.strerror}"
        return _Step(partition, problem=what)
    return _Step(partition, answer.removeprefix(_MARK))
