"""Jobs without output: the stacks of every process are logged, and the job fails or continues."""

import os
import re
import signal
import time

import pytest
from fakes.host_folders import write_job
from processes.launchers import child, holding, host, until

from scriptmode_runtime._processes import process_tree

LAYOUTS = {
    "single": {},
    "mirrored": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "mpi": {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2},
}


def start(tmp_path, launch, script, layout, action="fail", **hyperparameters):
    count = 1 if layout == "single" else 2
    code = {"train.py": script}
    job = write_job(tmp_path / "job", count, code, sagemaker_program="train.py", **LAYOUTS[layout], **hyperparameters)
    return [launch(base, SCRIPTMODE_HANG_SECONDS="4", SCRIPTMODE_HANG_ACTION=action) for base in job.values()]


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        ("single", {"algo-1": ["algo-1 process"]}),
        ("mirrored", {"algo-1": ["algo-1 worker 0"], "algo-2": ["algo-2 worker 1"]}),
        ("mpi", {"algo-1": ["rank 0", "rank 1", "rank 2", "rank 3"]}),
    ],
)
def test_a_job_that_hangs_shows_every_processes_stack_and_fails(tmp_path, launch, layout, parts):
    launchers = start(tmp_path, launch, child("hangs.py"), layout)
    assert [launcher.wait() for launcher in launchers] == [1] * len(launchers)
    for launcher in launchers:
        own = parts.get(launcher.base.name, [])
        assert [part for part in own if part not in launcher.output] == []
        assert launcher.output.count("in waits_for_the_others") >= len(own)
        where = "" if layout == "single" else " of any host"
        at = r"(worker 0, |rank \d, )?process \d+ is at train.py, line \d+, in waits_for_the_others"
        goes_on = r"the log shows what every process does \(SCRIPTMODE_HANG_ACTION=continue goes on\)"
        assert re.fullmatch(f"algo-1: no output{where} for 4 s; {at}; {goes_on}", launcher.failure)
    assert not holding(str(tmp_path))


def test_a_job_that_hangs_continues_with_that_setting(tmp_path, launch):
    go = tmp_path / "go"
    launchers = start(tmp_path, launch, child("hangs.py"), "mirrored", "continue", go=str(go))
    for launcher in launchers:
        launcher.says("in waits_for_the_others")
    go.touch()
    assert [launcher.wait() for launcher in launchers] == [0, 0]


def test_a_host_that_was_suspended_does_not_hang(tmp_path, launch):
    script = "import time\nfor _ in range(4):\n    print('step', flush=True)\n    time.sleep(1)\n"
    launcher = launch(host(tmp_path, script), SCRIPTMODE_HANG_SECONDS="3")
    launcher.says("step")
    (pid,) = process_tree.children(launcher.pid)
    for number, seconds in ((signal.SIGSTOP, 5), (signal.SIGCONT, 0)):
        os.kill(launcher.pid, number)
        os.kill(pid, number)
        time.sleep(seconds)
    assert launcher.wait() == 0


def test_a_host_that_cannot_create_its_directory_of_stacks_tells_the_others(tmp_path, launch):
    job = write_job(tmp_path, 2, {"train.py": "pass"}, sagemaker_program="train.py", **LAYOUTS["mirrored"])
    (job["algo-2"] / "stacks").touch()
    launchers = [launch(base, SCRIPTMODE_HANG_SECONDS="600") for base in job.values()]
    assert [launcher.wait() for launcher in launchers] == [1, 1]
    for launcher in launchers:
        assert re.match("algo-2: .*stacks cannot be created: File exists; free space", launcher.failure)


def test_a_host_that_speaks_speaks_for_the_job(tmp_path, launch):
    sleep = "    time.sleep(0.05)"
    script = child("hangs.py").replace(sleep, f"{sleep}\n    if talks: print('step', flush=True)")
    script = script.replace("import time\n", "import os, time\ntalks = os.environ['SM_CURRENT_HOST'] == 'algo-2'\n")
    go = tmp_path / "go"
    launchers = start(tmp_path, launch, script, "mirrored", go=str(go))
    until(lambda: launchers[1].output.count("step") > 120)
    assert "no output" not in launchers[0].output
    go.touch()
    assert [launcher.wait() for launcher in launchers] == [0, 0]


def test_a_stopped_process_and_one_that_is_not_pythons_are_named_without_their_secrets(tmp_path, launch):
    words = ["sh", "-c", "sleep 600", "https://bob:hush-hush@host/", "abcdef-123456"]
    base = host(tmp_path, f"import subprocess\nsubprocess.run({words})", password="hush-hush")
    launcher = launch(base, SCRIPTMODE_HANG_SECONDS="4", MY_API_KEY="abcdef-123456")
    (pid,) = until(lambda: process_tree.children(launcher.pid))
    until(lambda: process_tree.children(pid))
    os.kill(pid, signal.SIGSTOP)
    assert launcher.wait() == 1
    assert f"process {pid}, stopped by a signal: " in launcher.output
    assert "shows no Python stack: sleep 600" in launcher.output
    assert "hush-hush" not in launcher.output
    assert "abcdef-123456" not in launcher.output


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SCRIPTMODE_HANG_SECONDS", "soon", "SCRIPTMODE_HANG_SECONDS='soon' is not a number of seconds"),
        ("SCRIPTMODE_HANG_ACTION", "explode", "SCRIPTMODE_HANG_ACTION='explode' is not fail or continue"),
        ("SCRIPTMODE_HOST_TIMEOUT_SECONDS", "0", "SECONDS='0' is not a number of seconds above 0"),
    ],
)
def test_an_invalid_setting_is_an_error(tmp_path, launch, name, value, message):
    launcher = launch(host(tmp_path, "print('ran')"), **{name: value})
    assert launcher.wait() == 1
    assert message in launcher.failure
    assert "ran" not in launcher.output
