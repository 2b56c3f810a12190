"""Checks of a Slurm cluster: whether it answers, and whether its nodes share files and programs with this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scriptmode.core.machine import drafts
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
    with drafts.new_directory(data_dir_checks.existing_folder(data_dir)) as folder:
        (folder / "token").write_text(_MARK, encoding="utf-8")
        steps = _run_steps(partitions, lambda name: _share(name, folder, settings))
    advice = f"name a directory that all nodes share in {DATA_DIR_VARIABLE}, and install scriptmode in another"
    return _summarize(steps, f"use {data_dir} and {sys.executable}", f"jobs of {data_dir} cannot run", advice)


def _run_steps(partitions: Mapping[str, Partition], run: Callable[[str], _Step]) -> list[_Step]:
    up = sorted(name for name, each in partitions.items() if each.state == "UP")
    with ThreadPoolExecutor(_MOST_STEPS) as pool:
        return list(pool.map(lambda name: _try_step(name, run), up))


def _try_step(partition: str, run: Callable[[str], _Step]) -> _Step:
    try:
        return run(partition)
    except PlatformError as error:
        is_busy = "Unable to allocate resources" in error.message
        return _Step(partition, problem="" if is_busy else error.message)


def _summarize(steps: list[_Step], what_nodes_can: str, no_job: str, advice: str) -> Check:
    problems: dict[str, list[str]] = {}
    for step in steps:
        if step.problem:
            problems.setdefault(step.problem, []).append(step.partition)
    if problems:
        shown = "; ".join(f"{text} (partition {', '.join(names)})" for text, names in problems.items())
        return problem(f"{no_job}: {shown}", advice)
    busy = [step.partition for step in steps if not step.node]
    found = ", ".join(f"{step.partition} ({step.node})" for step in steps if step.node)
    found = f"{found or 'no partition'} can {what_nodes_can}"
    if busy:
        what = f"{found}; no node of {', '.join(busy)} was free within {_WAIT_SECONDS} s"
        return warning(what, "run scriptmode doctor again later", prevents=False)
    return ok(found)


def _run_step(partition: str, settings: SlurmSettings, command: Sequence[str]) -> str:
    own = settings.options_of(partition)
    options = tuple(f"--{name}={own[name]}" for name in _OPTIONS if name in own)
    return commands.run_step(partition, options, command, _WAIT_SECONDS)


def _share(partition: str, folder: Path, settings: SlurmSettings) -> _Step:
    try:
        _run_step(partition, settings, (sys.executable, "-c", _PROGRAM, str(folder), partition))
        answer = (folder / partition).read_text(encoding="utf-8")
    except OSError as error:
        what = f"this machine does not see what a node wrote to {folder.parent}: {error.strerror}"
        return _Step(partition, problem=what)
    return _Step(partition, answer.removeprefix(_MARK))
