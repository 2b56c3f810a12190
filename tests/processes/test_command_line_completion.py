"""Completion of ``scriptmode`` in real shells."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM, program

#: Completes the last of the words given, as bash does when its user presses the tabulator.
BASH = """
source <(scriptmode completion bash)
complete -p scriptmode
COMP_WORDS=(scriptmode "$@")
COMP_CWORD=$#
COMPREPLY=()
# Only a bash that somebody types in has its own; this one says that the shell was asked for files or folders.
compopt() { printf '%s\\n' "$2"; }
_scriptmode_completion scriptmode
printf '%s\\n' "${COMPREPLY[@]}"
"""
CHECKS = {"bash": ["-n"], "zsh": ["-n"], "fish": ["--no-execute"]}


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """Complete words in a bash that has never heard of the user; there are two jobs."""
    folder = tmp_path_factory.mktemp("completion")
    environment = {
        **os.environ,
        "SCRIPTMODE_DATA_DIR": str(folder / "data"),
        "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
    }
    (folder / "train.py").write_text("print(1)")
    for name in ("mnist-1", "mnist-2"):
        subprocess.run(
            [PROGRAM, "run", "train.py", "--job-name", name, "--metric", "loss=(1)"], check=True, capture_output=True, cwd=folder, env=environment,
            timeout=60,
        )  # fmt: skip

    def replies(*words):
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", *words], check=True, capture_output=True, text=True, cwd=folder,
            env=environment, timeout=60,
        )  # fmt: skip
        assert done.stderr == ""
        registered, *found = done.stdout.splitlines()
        assert registered.endswith("-F _scriptmode_completion scriptmode")
        return found

    return replies


@pytest.mark.parametrize(
    ("words", "replies"),
    [
        (["de"], ["describe"]),
        (["model", ""], ["download"]),
        (["describe", "mn"], ["mnist-2", "mnist-1"]),
        (["stop", "m"], []),
        (["jobs", "describe", "m"], ["mnist-2", "mnist-1"]),
        (["plan", "train.py", "--against", "m"], ["mnist-2", "mnist-1"]),
        (["describe", "x"], []),
        (["list", "--status", "St"], ["stopping", "stopped"]),
        (["run", "--instance-c"], ["--instance-count"]),
        (["run", "tra"], ["default"]),
        (["run", "train.py", "--source-dir", "d"], ["dirnames"]),
        (["run", "--input", "train", "=", "po"], ["default"]),
        (["run", "train.py", "--", "--data", "po"], ["default"]),
        (["run", "--input", "a=tra"], ["a=train.py"]),
        (["model", "download", "mnist-1", ""], ["dirnames"]),
        (["plan", "--distribution", "m"], ["mpi", "multi-worker-mirrored"]),
        (["metrics", "mnist-1", "l"], ["loss"]),
        (["logs", "mnist-1", "--host", ""], ["algo-1"]),
        (["logs", "--platform", "s"], ["sagemaker"]),
    ],
    ids=lambda value: " ".join(value) or "nothing",
)  # fmt: skip
def test_bash_completes_verbs_options_values_and_names_of_jobs(complete, words, replies):
    found = [reply for reply in complete(*words) if reply]
    # Which letters are capitals click's versions do not agree on.
    assert [reply.lower() for reply in found] == replies


@pytest.mark.parametrize("shell", CHECKS)
def test_every_shell_has_a_script_of_its_own(shell, tmp_path):
    script = program("completion", shell).stdout
    assert "_SCRIPTMODE_COMPLETE=" + shell + "_complete" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, *CHECKS[shell], str(tmp_path / "script")], check=True, timeout=60)
