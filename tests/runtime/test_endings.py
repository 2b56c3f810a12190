"""What is said of real programs that ended in failure: the lines that a user reads first, held line by line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import references
from fakes.host_folders import write_host
from runtime.endings import programs

from scriptmode._core.spec.failure_text import summarize_error
from scriptmode_local._store.state import failure_from_json
from scriptmode_runtime import _environment as environment, _report as report
from scriptmode_runtime.contract import FAILURE_LIMIT
from scriptmode_runtime.plan import ProcessSpec

KINDS = ("PYTHON", "SHELL", "PIP", "ABSL", "TENSORFLOW", "MPI")

#: What is said of each program, after a line with its kind and its name.
EXPECTED = dict(
    each.partition("\n")[::2]
    for each in (Path(__file__).parent / "endings" / "expected.txt").read_text().split("==== ")[1:]
)


def ending(folder, kind, text, python=sys.executable):
    """Run a program to its end, and return what the runtime and the SDK say of it."""
    base = write_host(folder / "ml")
    code = folder / "ml" / "code"
    code.mkdir(parents=True, exist_ok=True)
    if kind in ("PYTHON", "ABSL", "TENSORFLOW"):
        (code / "train.py").write_text(text + "\n")
        command = (python, "train.py")
    else:
        (code / "train.sh").write_text(text + "\n")
        command = ("bash", "train.sh")
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHON", "SM_", "COVERAGE", "MAKE", "MFLAGS"))
    }
    variables |= {"PYTHONUNBUFFERED": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "LC_ALL": "C"}
    done = subprocess.run(
        command, cwd=code, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=600, check=False, start_new_session=True,
    )  # fmt: skip
    spec = ProcessSpec("script", command, {}, str(code))
    output = done.stdout.decode("utf-8", "replace")
    failure = report.describe(environment.read(str(base), {}), spec, done.returncode, output)
    assert len(failure.message) <= FAILURE_LIMIT
    recorded = failure_from_json(report._record(failure))
    return recorded.cause, summarize_error(recorded), failure


def said(folder, cause, summary):
    """The text without what is another each time: addresses, process IDs, places of the interpreter and of the job."""
    text = f"{cause}\n{summary}".rstrip().replace(f"{folder}", "FOLDER")
    text = re.sub(r"(?:/[\w.-]+)+/python3?(?:\.\d+)?(?=: )", "python3", text)
    text = re.sub(r" +\d+ (Killed +)", r" 0 \1", text)
    return re.sub(r"0x[0-9a-f]+", "0x0", text)


def programs_of(*kinds):
    return [
        pytest.param(kind, name, id=f"{kind.lower()}, {name}")
        for kind in kinds
        for name in getattr(programs, kind)
        if sys.version_info >= (3, 11) or not any(word in name for word in ("group", "notes"))
    ]


def hold(folder, kind, name, python=sys.executable, version=""):
    text = getattr(programs, kind)[name]
    cause, summary, failure = ending(folder, kind, text, python)
    expected = EXPECTED.get(f"{kind} {version}: {name}") or EXPECTED[f"{kind}: {name}"]
    assert said(folder, cause, summary) == expected.rstrip("\n")
    # The reason of the service has the user's line and the cause, too, whatever is cut of the rest.
    for line in summary.splitlines():
        if line and line != "[...]" and not line.startswith(("  from ", "  while handling ")) and "[...]" not in line:
            assert line.strip() in re.sub(r"\{\{function_node [^}\n]*\}\} ?", "", failure.message), line


@pytest.mark.parametrize(("kind", "name"), programs_of("PYTHON", "SHELL", "PIP"))
def test_the_first_lines_are_the_cause_and_the_line_of_the_source(tmp_path, kind, name):
    hold(tmp_path, kind, name)


@pytest.mark.tf
@pytest.mark.parametrize(("kind", "name"), programs_of("ABSL", "TENSORFLOW"))
def test_the_first_lines_are_the_cause_of_an_error_of_tensorflow(tmp_path, kind, name):
    hold(tmp_path, kind, name)


@pytest.mark.tf
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "name"), programs_of("TENSORFLOW"))
def test_the_first_lines_are_the_cause_of_an_error_of_tensorflow_with_keras_3(tmp_path, kind, name):
    python = references.environment("tensorflow_cpu==2.21.0") / "python"
    hold(tmp_path, kind, name, str(python), "2.21")


def test_every_expected_text_has_its_program():
    named = {f"{kind}: {name}" for kind in KINDS for name in getattr(programs, kind)}
    assert {name.replace("TENSORFLOW 2.21", "TENSORFLOW") for name in EXPECTED} == named
    assert len(named) >= 60
