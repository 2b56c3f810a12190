"""Public programs and notebooks that train TensorFlow with the SageMaker SDK v1 or v2, with scriptmode in place of it.

Each runs by the import alias ``scriptmode.v2``, in an account of moto and without a network, until it has requested its
first training or tuning job. See ``v2_program``; ``v2_programs.toml`` has the programs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.foreign_suites import outcomes, sources

FILE = Path(__file__).with_name("v2_programs.toml")
#: A program whose source is fetched from a Git repository while it runs: it has no outcome.
_NEEDS_GIT = "SourceError: git could not fetch"


def read_repositories() -> list[dict[str, Any]]:
    """Read the repositories with their programs."""
    return outcomes.read_toml(FILE)["repository"]


VERSION = f"{len({each['name'] for each in read_repositories()})} repositories"


def run(folder: Path) -> dict[str, str | None]:
    """Run the programs; return why each requests no job, or which of its statements fail, None of one that succeeds."""
    programs: dict[str, dict[str, Any]] = {}
    for repository in read_repositories():
        directories = {path: repository.get("directory") or str(Path(path).parent) for path in repository["programs"]}
        found = sources.repository(repository["name"], repository["revision"], tuple(directories.values()))
        for path, directory in directories.items():
            copy = folder / str(len(programs))
            shutil.copytree(found / directory, copy / "program", symlinks=True)
            name = f"{repository['name'].partition('/')[2]}@{repository['revision'][:7]}:{path}"
            program = str(Path(path).relative_to(directory))
            programs[name] = {"folder": str(copy), "program": program, "given": repository.get("given", {})}
    listed, results = folder / "programs.json", folder / "results.json"
    listed.write_text(json.dumps(list(programs.values())), encoding="utf-8")
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SCRIPTMODE_"))}
    command = (sys.executable, "-m", "tests.foreign_suites.v2_program", str(listed), str(results))
    subprocess.run(command, env={**settings, "AWS_EC2_METADATA_DISABLED": "true"}, check=True)
    found = dict(zip(programs, json.loads(results.read_text(encoding="utf-8")), strict=True))
    return {name: _failure(result) for name, result in found.items() if not _needs_git(result)}


def _needs_git(result: dict[str, Any]) -> bool:
    return any(failure["error"].startswith(_NEEDS_GIT) for failure in result["failures"])


def _failure(result: dict[str, Any]) -> str | None:
    own = [failure for failure in result["failures"] if failure["own"]]
    if result["request"] and not own:
        return None
    told = [f"{failure['statement'][:80]!r}: {failure['error'][:300]}" for failure in own or result["failures"]]
    return f"{'' if result['request'] else 'no request; '}{'; '.join(told[:3])}"
