"""Several ``train`` processes of one job: the first failure is everyone's, and no host reports success before all did well."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest
from fakes.host_folders import write_job
from fakes.promptness import soon
from processes.launchers import child, holding, until

MIRRORED = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}


def joined(launchers):
    """Wait until the first host has heard of every other."""
    document = json.loads((launchers[0].base / "input/config/scriptmode.json").read_text())
    port = f":{document['hosts']['algo-1']['ports']['peers']:04X}"
    connected = "01"

    def connections():
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        return len(launchers) - 1 == sum(row[1].endswith(port) and row[3] == connected for row in rows)

    until(connections)


def start(tmp_path, launch, script, count=3, **hyperparameters):
    job = write_job(tmp_path / "job", count, {"train.py": script}, **{**MIRRORED, **hyperparameters})
    return [launch(base, SCRIPTMODE_STOP_GRACE_SECONDS="10") for base in job.values()]


@pytest.mark.parametrize("failing", ["algo-1", "algo-3"], ids=["lead", "member"])
@pytest.mark.parametrize(
    ("how", "code", "line"),
    [("raise", 1, "exit code 1"), ("kill", 137, "killed by SIGKILL"), ("3", 3, "exit code 3")],
)
@pytest.mark.prompt
def test_every_host_reports_the_first_failure_within_3_seconds(tmp_path, launch, failing, how, code, line):
    go = tmp_path / "go"
    launchers = start(tmp_path, launch, child("fails_on_one_host.py"), host=failing, how=how, go=str(go))
    for launcher in launchers:
        if launcher.base.name != failing:
            launcher.says("training")
    began = time.monotonic()
    go.touch()
    assert [launcher.wait() for launcher in launchers] == [code] * 3
    soon(time.monotonic() - began, 3)
    assert {launcher.failure.splitlines()[0] for launcher in launchers} == {f"{failing}, worker: {line}"}
    assert not holding(str(tmp_path))


@pytest.mark.parametrize("lost", [0, 2], ids=["lead", "member"])
@pytest.mark.prompt
def test_a_launcher_that_is_killed_ends_the_job_everywhere(tmp_path, launch, lost):
    launchers = start(tmp_path, launch, child("sleeps.py"))
    for launcher in launchers:
        launcher.says("asleep")
    joined(launchers)
    began = time.monotonic()
    launchers[lost].process.kill()
    others = [launcher for launcher in launchers if launcher is not launchers[lost]]
    assert [launcher.wait() for launcher in others] == [1, 1]
    soon(time.monotonic() - began, 3)
    assert {launcher.failure.split(":")[0] for launcher in others} == {f"algo-{lost + 1}"}
    assert not holding(str(tmp_path))


def test_a_host_that_ended_well_waits_for_the_others_and_fails_with_them(tmp_path, launch):
    go = tmp_path / "go"
    script = child("fails_on_one_host.py").replace("time.sleep(600)", "sys.exit(0)")
    launchers = start(tmp_path, launch, script, host="algo-2", how="7", go=str(go))
    launchers[0].says("worker ended with exit code 0")
    launchers[2].says("worker ended with exit code 0")
    assert launchers[0].process.poll() is None
    go.touch()
    assert [launcher.wait() for launcher in launchers] == [7, 7, 7]


def test_all_hosts_end_well_together(tmp_path, launch):
    launchers = start(tmp_path, launch, "import json, os; print(json.loads(os.environ['TF_CONFIG'])['task'])")
    assert [launcher.wait() for launcher in launchers] == [0, 0, 0]
    assert ["'index': 2" in launcher.output for launcher in launchers] == [False, False, True]


@pytest.mark.parametrize("told", [[0, 1, 2], [1]], ids=["every host", "one host"])
def test_a_stop_gives_every_host_the_grace(tmp_path, launch, told):
    launchers = start(tmp_path, launch, child("saves_on_sigterm.py"))
    for launcher in launchers:
        launcher.says("training")
    for number in told:
        launchers[number].send(signal.SIGTERM)
    assert [launcher.wait() for launcher in launchers] == [143, 143, 143]
    assert all((launcher.base / "model" / "checkpoint").exists() for launcher in launchers)


def test_a_host_that_cannot_start_its_program_ends_the_job(tmp_path, launch):
    job = write_job(tmp_path / "job", 2, {"train.py": child("sleeps.py")}, **MIRRORED)
    (job["algo-2"] / "code" / "train.py").unlink()
    launchers = [launch(base) for base in job.values()]
    assert [launcher.wait() for launcher in launchers] == [1, 1]
    assert {launcher.failure for launcher in launchers} == {launchers[0].failure}
    assert "algo-2: the entry point 'train.py' is not in the source" in launchers[0].failure


def test_a_taken_port_between_hosts_is_named(tmp_path, launch):
    job = write_job(tmp_path / "job", 2, {"train.py": ""}, **MIRRORED)
    cluster = json.loads((job["algo-1"] / "input/config/scriptmode.json").read_text())
    port = cluster["hosts"]["algo-1"]["ports"]["peers"]
    with socket.create_server(("127.0.0.1", port)):
        launcher = launch(job["algo-1"])
        assert launcher.wait() == 1
    assert f"algo-1: port {port} (peers) cannot be bound: Address already in use" in launcher.failure


def test_a_stranger_on_the_port_between_hosts_changes_nothing(tmp_path, launch):
    job = write_job(tmp_path / "job", 3, {"train.py": "print('trained')"}, **MIRRORED)
    *first, last = job.values()
    launchers = [launch(base) for base in first]
    for launcher in launchers:
        launcher.says("worker ended with exit code 0")
    cluster = json.loads((launchers[0].base / "input/config/scriptmode.json").read_text())
    port = cluster["hosts"]["algo-1"]["ports"]["peers"]
    for words in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"type": "failed", "host": "algo-2", "exit_code": 9, "message": "lie"}\n',
        b"x" * 100_000,
        b"[" * 3_000 + b"\n",
        b'{"type": "join", "host": "algo-2", "nonce": "n", "proof": "\xc3\xa9"}\n',
        b'{"type": "join", "host": "\\ud800", "nonce": "\\ud800", "proof": "\\ud800"}\n',
    ):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(words)
    # Until the last host is there the first one listens.
    launchers.append(launch(last))
    assert [launcher.wait() for launcher in launchers] == [0, 0, 0]
