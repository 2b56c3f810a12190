"""A run of pytest over a foreign suite, in a process of its own and without this project's settings of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.foreign_suites.outcomes import SKIPPED, rules

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(
    folder: Path, suite: str, *arguments: str, plugin: str, python: Path | str = sys.executable, **variables: str
) -> dict[str, str | None]:
    """Return the failure of each test, None of one that passed, by its name ``file.py::test[parameters]``.

    Args:
        folder: Directory of the suite, the working directory; where the log ``pytest.log`` is written.
        suite: Name of the suite in ``expected.toml``. Its tests that are not applicable are not run.
        arguments: More of pytest's arguments: files, options.
        plugin: Module beside this one that adapts the suite.
        python: An interpreter that has pytest and what the suite imports.
        variables: Environment variables in addition to this process's.
    """
    report = folder / "report.xml"
    skipped = [test for rule in rules(suite) if rule.kind == "not applicable" for test in rule.tests]
    plugins = ("-p", plugin, "-p", "not_applicable_plugin", "-p", "no:cacheprovider")
    command = (str(python), "-m", "pytest", "-c", os.devnull, "--rootdir", ".", *plugins, "--junitxml", str(report))
    paths = (HERE, HERE.parent, ROOT / "sdk", ROOT / "entrypoints", folder)
    settings = {"PYTHONPATH": ":".join(map(str, paths)), "SCRIPTMODE_FOREIGN_SKIP": json.dumps(skipped)}
    environment = {**os.environ, **settings, **variables}
    with (folder / "pytest.log").open("w") as log:
        subprocess.run((*command, *arguments), cwd=folder, env=environment, stdout=log, stderr=log, check=False)
    if not report.exists():
        return {"pytest": (folder / "pytest.log").read_text()[-2000:]}
    return {_name(case): _failure(case) for case in ET.parse(report).iter("testcase")}


def _name(case: ET.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _failure(case: ET.Element) -> str | None:
    found = [each for each in case if each.tag in ("failure", "error", "skipped")]
    if not found:
        return None
    if found[0].tag == "skipped":
        return f"{SKIPPED}{found[0].get('message')}"
    # The last line of the text names the line that failed.
    where = (found[0].text or "").strip().rpartition("\n")[2]
    return f"{found[0].get('message', found[0].tag).partition(chr(10))[0]} ({where})"
