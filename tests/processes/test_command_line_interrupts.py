"""Ctrl-C at every stage of a command ends it with 130 and one sentence, without a traceback."""

import os
import signal
import subprocess
import sys

import pytest
from fakes.processes import until

pytestmark = pytest.mark.slow
COMPLETION = {"_SCRIPTMODE_COMPLETE": "bash_complete", "COMP_WORDS": "scriptmode describe ", "COMP_CWORD": "2"}
PROGRAM = "import sys; sys.argv[0] = 'scriptmode'; from scriptmode.__main__ import main; main()"
#: Waits to be interrupted, once it has said that it is there.
WAIT = """
import os, time

def wait():
    open(os.environ["REACHED"], "w").close()
    time.sleep(60)
"""
AT_IMPORT, AT_EXIT = f"{WAIT}\nwait()", f"{WAIT}\nimport atexit\natexit.register(wait)"


@pytest.mark.parametrize(
    ("module", "content", "words", "variables", "said"),
    [
        ("click", AT_IMPORT, ["list"], {}, "scriptmode: interrupted"),
        ("rich", AT_IMPORT, ["top"], {}, "scriptmode: interrupted"),
        (
            "rich",
            AT_IMPORT,
            ["top", "--json"],
            {},
            '{"error": "Interrupted", "message": "interrupted", "exit_code": 130}',
        ),
        ("sitecustomize", AT_EXIT, ["completion", "bash"], {}, "scriptmode: interrupted"),
        ("click", AT_IMPORT, [], COMPLETION, ""),
        ("platformdirs", AT_IMPORT, [], COMPLETION, ""),
    ],
    ids=["first imports", "imports of a verb", "as JSON", "end", "completion", "completion of a job"],
)
def test_an_interrupt_ends_the_command_in_one_sentence(tmp_path, module, content, words, variables, said):
    (tmp_path / f"{module}.py").write_text(content)
    reached = tmp_path / "reached"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCRIPTMODE_")}
    environment = {**kept, **variables, "PYTHONPATH": str(tmp_path), "REACHED": str(reached)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(reached.exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert errors.strip() == said
    assert process.returncode == 130


def test_a_command_in_the_background_of_a_shell_ignores_ctrl_c(tmp_path):
    (tmp_path / "click.py").write_text(AT_IMPORT.replace("sleep(60)", "sleep(1)"))
    reached = tmp_path / "reached"
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$0" -m scriptmode list', sys.executable],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "REACHED": str(reached)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(reached.exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "AttributeError" in errors
