"""``train`` as process 1 of a host: it forwards, waits, kills and reaps; no signal is lost."""

import signal
import sys
import time

import pytest
from fakes.promptness import soon
from faults import processes
from faults.cells import PROGRAMS
from faults.hosts import ended
from faults.memory import MemoryGroup
from processes.launchers import child, until

pytestmark = pytest.mark.slow
DEAF = child("ignores_sigterm.py")


def alone(cluster, script, **variables):
    """A job of one host."""
    (host,) = cluster.fresh(1)
    host.write([host.name], {"train.py": script}, sagemaker_program="train.py")
    host.train(**variables)
    return host


def program(name):
    return (PROGRAMS / name).read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
@pytest.mark.prompt
def test_a_stop_reaches_the_whole_group_at_once_and_leaves_all_of_it_the_time_to_save(cluster, number, code):
    host = alone(cluster, program("family.py"))
    notes = host.ml / "output" / "data"
    family = ("script", "child", "grandchild")
    until(lambda: all((notes / f"{name} is up").exists() for name in family))
    host.run.signal(number)
    assert host.run.wait() == code
    assert host.run.failure == f"algo-1: stopped by {number.name}"
    told = [float((notes / f"{name} was told {number}").read_text()) for name in family]
    soon(max(told) - min(told), 0.2)
    assert {(host.ml / "checkpoints" / name).stat().st_size for name in family} == {1_000_000}


@pytest.mark.prompt
def test_a_script_that_stays_is_killed_when_the_grace_is_over(cluster):
    host = alone(cluster, DEAF, SCRIPTMODE_STOP_GRACE_SECONDS="2")
    host.run.says("deaf")
    host.run.signal(signal.SIGTERM)
    began = time.monotonic()
    assert host.run.wait() == 143
    took = time.monotonic() - began
    assert took >= 1.9
    soon(took, 3)
    assert host.run.failure


def test_orphans_are_reaped_while_the_script_runs(cluster):
    host = alone(cluster, program("orphans.py"))
    host.run.says("all of them")
    until(lambda: len(processes.members(host.run.namespace)) == 2)
    (host.ml / "input" / "finish").touch()
    assert host.run.wait() == 0


def test_everything_dies_with_process_1(cluster):
    host = alone(cluster, program("family.py"))
    until((host.ml / "output" / "data" / "grandchild is up").exists)
    host.run.kill()
    until(lambda: not processes.members(host.run.namespace))


def test_a_host_without_memory_loses_the_script_and_not_its_launcher(cluster):
    host = alone(cluster, program("eats_memory.py"))
    try:
        group = MemoryGroup(96 << 20)
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    host.run.says("hungry")
    for pid in host.run.processes():
        group.add(pid)
    (host.ml / "input" / "fault").touch()
    assert host.run.wait() == 137
    assert host.run.failure.startswith(
        "algo-1, script: killed by SIGKILL\nIf it was not killed on purpose, memory ran out"
    )
    group.close()


def test_a_hang_that_passes_is_shown_and_the_job_goes_on(cluster):
    hosts = cluster.fresh(2)
    code = {"train.py": program("trainer.py")}
    options = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}
    for host in hosts:
        host.write([each.name for each in hosts], code, fault="SIGSTOP", where="worker 1", **options)
        host.train(SCRIPTMODE_HANG_SECONDS="2", SCRIPTMODE_HANG_ACTION="continue")
        host.run.says("training as")
    worker = hosts[1].run.find(lambda pid: processes.task(pid) == "worker 1")
    hosts[1].run.signal(signal.SIGSTOP, worker)
    (hosts[0].ml / "input" / "quiet").touch()
    hosts[1].run.says("stopped by a signal")
    hosts[0].run.says('File "/opt/ml/code/train.py"')
    hosts[1].run.signal(signal.SIGCONT, worker)
    for host in hosts:
        (host.ml / "input" / "finish").touch()
    assert [host.run.wait() for host in hosts] == [0, 0]


def test_below_another_process_1_the_script_dies_with_its_launcher(cluster):
    (host,) = cluster.fresh(1)
    host.write([host.name], {"train.py": child("sleeps.py")}, sagemaker_program="train.py")
    host.train(init=True)
    host.run.says("asleep")
    host.run.signal(signal.SIGKILL, host.run.find(is_train))
    until(lambda: len(host.run.processes()) == 1)


def test_below_another_process_1_nothing_is_left_of_daemons(cluster):
    (host,) = cluster.fresh(1)
    host.write([host.name], {"train.py": child("leaves_a_daemon.py")}, sagemaker_program="train.py")
    host.train(init=True)
    host.run.says("train ended with 0")
    until(lambda: len(host.run.processes()) == 1)


def is_train(pid):
    return processes.words(pid)[1:] == ["-m", "scriptmode_runtime"]


@pytest.mark.tf
@pytest.mark.parametrize("told", [(0,), (1,), (0, 1)], ids=["first host", "other host", "every host"])
def test_a_stop_leaves_trainers_the_time_and_the_servers_to_save_what_these_hold(cluster, told):
    hosts = cluster.fresh(2)
    code = {"train.py": program("saves.py"), "trainer.py": program("trainer.py")}
    for host in hosts:
        host.write(
            [each.name for each in hosts], code, sagemaker_program="train.py", sagemaker_parameter_server_enabled=True
        )
        host.train(SCRIPTMODE_STOP_GRACE_SECONDS="60")
    hosts[0].run.says("training as master 0", 60)
    hosts[1].run.says("training as worker 0", 60)
    for number in told:
        hosts[number].run.signal(signal.SIGTERM)
    ended([host.run for host in hosts], time.monotonic(), 50)
    assert [host.run.code for host in hosts] == [143, 143]
    whole = " ".join(map(str, range(20)))
    assert (hosts[0].ml / "model" / "saved by master 0").read_text() == whole
    assert (hosts[1].ml / "model" / "saved by worker 0").read_text() == whole


@pytest.mark.parametrize("delay", [0, 5, 10, 20, 40, 80], ids=lambda delay: f"{delay} ms")
def test_a_stop_right_after_the_start_is_not_lost(cluster, delay):
    (host,) = cluster.fresh(1)
    host.write([host.name], {"train.py": child("sleeps.py")}, sagemaker_program="train.py")
    # The kernel throws away what process 1 neither handles nor blocks; an image's entry point blocks it first.
    host.train(python="env", command=("--block-signal=TERM", sys.executable, "-m", "scriptmode_runtime"))
    until(lambda: is_train(host.run.pid))
    began = time.monotonic()
    until(lambda: time.monotonic() - began >= delay / 1000)
    host.run.signal(signal.SIGTERM)
    assert host.run.wait() == 143
    assert host.run.failure == "algo-1: stopped by SIGTERM"


def test_from_its_first_line_on_train_takes_a_stop(cluster):
    (host,) = cluster.fresh(1)
    host.write([host.name], {"train.py": child("sleeps.py")}, sagemaker_program="train.py")
    host.train()
    until(lambda: processes.takes(host.run.pid, signal.SIGTERM))
    host.run.signal(signal.SIGTERM)
    assert host.run.wait() == 143
