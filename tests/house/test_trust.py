"""What others wrote is opened beneath a directory, never by a resolved path."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "scriptmode"
RUNTIME = ROOT / "entrypoints" / "scriptmode_runtime"
SOURCES = sorted([*SDK.rglob("*.py"), *RUNTIME.rglob("*.py")])
#: Each trusts what it is given: a path of realpath and resolve is wrong where it is too long, and is another one as soon
#: as somebody puts a link there; rmtree is recursive.
FORBIDDEN = {"realpath", "resolve", "rmtree"}
#: What is the caller's own, or this program's own and closed to others.
ALLOWED = {
    # The folder that the caller names on the command line.
    "sdk/scriptmode/cli/cloud_ml_engine/package.py": {"resolve"},
    "sdk/scriptmode/source/archive.py": {"resolve"},  # strictly, for the name of a dependency that the caller names
    "sdk/scriptmode/results/tensorboard.py": {"rmtree"},  # its own copies of event files, a few folders deep
    "sdk/scriptmode/data/mounts.py": {"realpath"},  # the job's folder as /proc/self/mountinfo spells it
    "entrypoints/scriptmode_runtime/host/installed_mpi.py": {"realpath"},  # the installed mpirun's prefix
}


def label(path):
    return path.relative_to(ROOT).as_posix()


def named(source):
    """What of the forbidden is used or imported, by whatever name."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    return found & FORBIDDEN


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_nothing_is_resolved_or_removed_by_its_path(path):
    assert named(path.read_text()) == ALLOWED.get(label(path), set())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os; os.path.realpath(x)", {"realpath"}),
        ("from os.path import realpath as r", {"realpath"}),
        ("from shutil import rmtree", {"rmtree"}),
        ("import shutil as s; s.rmtree(x)", {"rmtree"}),
        ("path.resolve()", {"resolve"}),
        ("remove = shutil.rmtree", {"rmtree"}),
        ("'resolve'; _resolve(x); remove_tree(x)", set()),
    ],
)
def test_what_is_forbidden_is_found_however_it_is_spelled(source, found):
    assert named(source) == found
