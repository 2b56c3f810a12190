"""A stop leaves every process of a program the time to save, whatever becomes of the one that started it."""

import re
import shutil
import signal
import sys
import time

import pytest
from fakes.host_folders import write_host, write_job
from fakes.promptness import soon
from processes.launchers import child, holding, until

SAVES = "saves_slowly.py"
#: The first line of a shell script, the rest of its text, and what it needs.
SHELLS = {
    "foreground": ("#!/bin/sh", "{save}\n"),
    "background": ("#!/bin/sh", "{save} &\nwait\n"),
    "job control": ("#!/bin/bash", "set -m\n{save} &\nwait\n"),
    "below another shell of another session": ("#!/bin/sh", 'setsid sh -c "{save}; true"\ntrue\n'),
}
PYTHON = """
import subprocess, sys
subprocess.run([sys.executable, "saves_slowly.py", "2"], start_new_session=True)
print("the parent went on", flush=True)
"""
CATCHES = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
started = subprocess.Popen([sys.executable, "saves_slowly.py", "2"])
time.sleep(600)
"""


def start(tmp_path, launch, program, text, **variables):
    code = {program: text, SAVES: child(SAVES)}
    base = write_host(tmp_path / "algo-1", code=code, sagemaker_program=program)
    (base / "code" / program).chmod(0o755)
    return launch(base, **{"SCRIPTMODE_STOP_GRACE_SECONDS": "20", **variables})


def shell(kind, seconds=2.0):
    first, rest = SHELLS[kind]
    return f"{first}\n" + rest.format(save=f"{sys.executable} {SAVES} {seconds}")


def saved(launcher, name="saved"):
    return (launcher.base / "model" / name).read_text()


@pytest.mark.prompt
@pytest.mark.parametrize("kind", SHELLS)
def test_a_program_that_a_shell_started_saves_before_the_job_ends(tmp_path, launch, kind):
    if not shutil.which(shell(kind).partition("\n")[0].removeprefix("#!")):
        pytest.skip("another shell")
    launcher = start(tmp_path, launch, "train.sh", shell(kind))
    launcher.says("training")
    launcher.send(signal.SIGTERM)
    began = time.monotonic()
    assert launcher.wait() == 143
    assert saved(launcher) == "told 1 times"
    soon(time.monotonic() - began, 4)
    assert not holding(str(launcher.base))


@pytest.mark.parametrize("script", [PYTHON, CATCHES], ids=["session of its own", "parent ends itself"])
def test_a_program_that_python_started_saves_before_the_job_ends(tmp_path, launch, script):
    launcher = start(tmp_path, launch, "train.py", script)
    launcher.says("training")
    launcher.send(signal.SIGTERM)
    assert launcher.wait() == 143
    assert saved(launcher) == "told 1 times"
    assert not holding(str(launcher.base))


def test_a_second_interrupt_does_not_wait_for_what_the_script_left(tmp_path, launch):
    launcher = start(tmp_path, launch, "train.sh", shell("foreground", 600))
    launcher.says("training")
    launcher.send(signal.SIGINT)
    launcher.says("script ended")
    launcher.send(signal.SIGINT)
    assert launcher.wait(15) == 130
    assert not holding(str(launcher.base))


def test_a_save_that_is_cut_off_is_logged_with_its_seconds(tmp_path, launch):
    launcher = start(tmp_path, launch, "train.sh", shell("background", 60.0), SCRIPTMODE_STOP_GRACE_SECONDS="1.5")
    launcher.says("training")
    launcher.send(signal.SIGTERM)
    assert launcher.wait() == 143
    said = r"scriptmode: process(es)? [\d, ]+ (is|are) killed, not having ended within 1\.5 s of SIGTERM \(SCRIPTMODE_STOP_"
    assert re.search(said, launcher.output), launcher.output


def test_processes_of_a_failed_script_get_sigterm_before_sigkill(tmp_path, launch):
    script = f"{sys.executable} {SAVES} 0.8 &\nuntil [ -e go ]; do sleep 0.05; done\nexit 3\n"
    launcher = start(tmp_path, launch, "train.sh", script)
    launcher.says("training")
    (launcher.base / "code" / "go").touch()
    assert launcher.wait() == 3
    assert saved(launcher) == "told 1 times"
    assert not holding(str(launcher.base))


def stopped_ranks(tmp_path, launch, text, grace):
    """Stop two hosts whose ranks' programs save; return their launchers, and the seconds until they had ended."""
    mpi = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    job = write_job(tmp_path / "job", 2, {"train.sh": text, SAVES: child(SAVES)}, sagemaker_program="train.sh", **mpi)
    launchers = [launch(base, SCRIPTMODE_STOP_GRACE_SECONDS=grace) for base in job.values()]
    until(lambda: launchers[0].output.count("training") == 4)
    for launcher in launchers:
        launcher.send(signal.SIGTERM)
    began = time.monotonic()
    assert [launcher.wait() for launcher in launchers] == [143, 143]
    seconds = time.monotonic() - began
    assert not holding(str(tmp_path))
    return launchers, seconds


@pytest.mark.mpi
def test_programs_that_ranks_started_save_before_the_job_ends(tmp_path, launch):
    launchers, _ = stopped_ranks(tmp_path, launch, shell("foreground") + "true\n", "20")
    assert {saved(launchers[rank // 2], f"saved{rank}") for rank in range(4)} == {"told 1 times"}


@pytest.mark.mpi
def test_ranks_whose_programs_stay_are_killed_when_the_grace_is_over(tmp_path, launch):
    _, seconds = stopped_ranks(tmp_path, launch, shell("foreground", 600) + "true\n", "1.5")
    assert seconds > 1.2
