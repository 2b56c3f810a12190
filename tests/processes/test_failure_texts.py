"""What a person sees of a job that failed: in Python, in IPython and in the shell."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
WORDS = """
import json

def count(text):
    return len(json.loads(text))

class Late:
    def __del__(self):
        raise RuntimeError("at the end")

late = Late()
print("training begins")
count("{")
"""
CALL = """
from scriptmode import Estimator
estimator = Estimator(entry_point="words.py", source_dir="code", instance_type="local_process")
estimator.fit(job_name="words", logs={logs})
"""
LOCATION = '  File "code/words.py", line 5, in count\n    return len(json.loads(text))\n'
ERROR = "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n"
SHORT = f"training job words failed: algo-1, script: exit code 1\n{LOCATION}{ERROR}  log:     scriptmode logs words --host algo-1 ("


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a program beside the source ``code`` and returns what it wrote."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "words.py").write_text(WORDS)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}

    def run_program(*arguments, program=""):
        (tmp_path / "call.py").write_text(program)
        argv = (sys.executable, *arguments)
        done = subprocess.run(
            argv, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode in (1, 2, 137), done.stderr
        return done

    return run_program


def test_a_program_ends_with_its_own_line_and_the_error_below_a_log_that_has_it_all(run):
    done = run("call.py", program=CALL.format(logs=True))
    assert f"scriptmode.errors.TrainingJobFailed: {SHORT}" in done.stderr
    assert 'call.py", line 4, in <module>\n    estimator.fit(job_name="words", logs=True)\n' in done.stderr
    assert done.stdout.count("JSONDecodeError") == 1
    assert "algo-1 | scriptmode: script ended with exit code 1\n" in done.stdout


def test_a_program_that_shows_no_log_ends_with_the_whole_traceback(run):
    done = run("call.py", program=CALL.format(logs=False))
    assert f"{LOCATION}           " in done.stderr
    assert 'File "code/words.py", line 13, in <module>\n' in done.stderr
    assert f"\n{ERROR}  log:     scriptmode logs words --host algo-1 (" in done.stderr
    assert ", exit code: 1" not in done.stderr
    assert "at the end" not in done.stderr


def test_the_shell_shows_the_error_once_more_in_short(run, tmp_path):
    done = run("-m", "scriptmode", "run", "words.py", "--source-dir", "code", "--job-name", "words")
    assert done.stderr.startswith(f"scriptmode: {SHORT}")
    assert done.stderr.splitlines()[-1] == "  again:   scriptmode rerun words (the same source)"


def test_a_script_that_was_killed_has_the_end_of_its_log_and_how_its_checkpoints_are_used(run, tmp_path):
    (tmp_path / "killed.py").write_text("import os\nprint('step 3', flush=True)\nos.kill(os.getpid(), 9)\n")
    words = ("run", "killed.py", "--checkpoint-s3-uri", "saved", "--job-name", "killed")
    done = run("-m", "scriptmode", *words)
    lines = done.stderr.splitlines()
    cause = "scriptmode: training job killed failed: algo-1, script: killed by SIGKILL"
    assert (done.returncode, lines[:3]) == (137, [cause, "its log ends with", "step 3"])
    again = "scriptmode rerun killed (the same source, from the checkpoints in file://"
    assert lines[-1] == f"  again:   {again}{tmp_path}/saved)"
