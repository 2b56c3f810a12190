"""Rehearsals: faults as values and texts, steps in logs, and real jobs that meet each fault."""

import json
import os
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM
from fakes.processes import processes_naming, until

from scriptmode import Estimator, SpecError
from scriptmode.rehearsal import Fault, Interrupt, Kill, LoseHost, Rehearsal, Verdict, parse_fault
from scriptmode.rehearsal._steps import find_resumption
from scriptmode_local._store.job_store import JobFolder
from scriptmode_slurm._engine.platform import Slurm

#: Takes 60 steps, saves after each tenth one and at SIGTERM, and goes on from there.
RECOVERS = """
    import os, pathlib, signal, time
    checkpoint = pathlib.Path("/opt/ml/checkpoints", os.environ["SM_CURRENT_HOST"])
    step = int(checkpoint.read_text()) if checkpoint.exists() else 0
    print("resumed at step", step, flush=True)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    while step < 60:
        time.sleep(0.05)
        step += 1
        print("step", step, flush=True)
        if step % 10 == 0 or stop:
            draft = checkpoint.with_name("." + checkpoint.name)
            draft.write_text(str(step))
            draft.rename(checkpoint)
        if stop:
            raise SystemExit(143)
    pathlib.Path(os.environ["SM_MODEL_DIR"], checkpoint.name).write_text(str(step))
"""
#: Each loses all that it did, for another reason.
SAVES_AT_THE_END = """
    import pathlib, time
    for step in range(40):
        time.sleep(0.05)
        print("step", step, flush=True)
    def save(path):
        pathlib.Path(path).write_text("weights")
    save("/opt/ml/checkpoints/weights")
"""
BEGINS_AT_ITS_START = """
    import pathlib, time
    for step in range(40):
        time.sleep(0.05)
        print("step", step, flush=True)
        pathlib.Path("/opt/ml/checkpoints/weights").write_text(str(step))
"""
#: Names no step, cannot go on from its own checkpoint, or says that it is complete when it is interrupted.
NAMES_NO_STEP = "print('up', flush=True)"
CANNOT_RESTORE = BEGINS_AT_ITS_START.replace(
    "for step", "assert not pathlib.Path('/opt/ml/checkpoints/weights').exists()\n    for step", 1
)
ENDS_EARLY = """
    import signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for step in range(1, 41):
        time.sleep(0.05)
        print("step", step, flush=True)
"""
METRICS = [{"Name": "step", "Regex": "step ([0-9]+)"}]
#: What the command line needs beside the program.
STEPS = ("--metric", "step=step ([0-9]+)", "--step-metric", "step")


@pytest.fixture
def estimator(tmp_path, monkeypatch):
    """Return a function that returns an estimator of a script on hosts of this machine, with quick time-outs."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def create(script, **arguments):
        folder = tmp_path / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(textwrap.dedent(script))
        arguments = {"checkpoint_s3_uri": "file:///never/written", "instance_count": 1, **arguments}
        environment = {"SCRIPTMODE_HOST_TIMEOUT_SECONDS": "4", **arguments.pop("environment", {})}
        return Estimator(
            entry_point="train.py", source_dir=str(folder), instance_type="local_process", environment=environment,
            **{"metric_definitions": METRICS, **arguments},
        )  # fmt: skip

    return create


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kill", Kill()),
        ("kill:host=algo-2,at=60", Kill("algo-2", 60)),
        ("lose-host:at=20", LoseHost(20)),
        ("interrupt:notice=3.0,at=5", Interrupt(3.0, 5)),
    ],
)
def test_a_text_is_a_fault_and_a_fault_is_its_text(text, fault):
    assert parse_fault(text) == parse_fault(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kil", "kill"),
        ("freeze", "freeze"),
        ("kill:hots=algo-1", "host"),
        ("kill:at=soon", "give a number as at"),
        ("kill:at=0", "at is 0"),
        ("interrupt:notice=0", "above 0"),
        ("interrupt:notice=nan", "above 0"),
    ],
)
def test_a_wrong_text_is_refused_with_the_next_step(text, words):
    with pytest.raises(SpecError, match=words):
        parse_fault(text)


def test_a_wrong_fault_and_a_metric_that_is_not_defined_are_refused(estimator):
    for faults, words in (
        ([3], r"Kill\(at=60\)"),
        ([Fault()], r"Kill\(at=60\)"),
        ([], r"faults is \[\]"),
        (Kill("algo-3"), "use one of algo-1, algo-2"),
    ):
        with pytest.raises(SpecError, match=words):
            estimator(RECOVERS, instance_count=2).rehearse(faults=faults, step_metric="step")
    with pytest.raises(SpecError, match="step_metric is 'stp', which is not a metric of the job; did you mean 'step'"):
        estimator(RECOVERS).rehearse(step_metric="stp")


@pytest.mark.parametrize(
    ("before", "after", "interval", "expected"),
    [
        ([1, 2, 3], [3, 4], 1, (3, 3, 1)),
        ([1, 2, 3], [4], 1, (3, 4, 0)),
        ([0, 1, 2], [0, 1], 1, (2, 0, 3)),
        ([10, 20], [30], 10, (20, 30, 0)),
        ([10, 20], [21, 30], 10, (20, 21, 0)),
        ([10, 20], [10, 20], 10, (20, 10, 20)),
        ([10, 20], [], 10, None),
        ([], [1], 1, None),
    ],
)
def test_what_was_made_twice_is_counted_from_the_values_alone(before, after, interval, expected):
    found = find_resumption([before, after], interval)
    assert expected == (found and (found.before, found.first, found.lost))


def test_the_text_of_a_rehearsal_is_what_its_verdicts_say():
    killed = Verdict("kill", "a", "b", "Failed", before=53, first=51, lost=3, last=100, files_before=2, files_after=2)
    ready = Rehearsal("u", 100, 9.0, (killed,))
    assert str(ready).splitlines() == [
        "undisturbed: u, last step 100, 9.0 s",
        "kill  Failed  step 53, then 51: 3 lost  last step 100  checkpoint files: 2, then 2",
        "verdict: ready: lost at most 3 steps",
    ]
    assert ready.ok
    lost = Verdict("lose-host", "c", problems=("all lost",))
    both = Rehearsal("u", 100, 9.0, (killed, lost))
    assert not both.ok
    assert str(both).splitlines()[-2:] == ["problem: lose-host: all lost", "verdict: not ready: 1 problem"]
    assert json.loads(json.dumps(both.to_dict()))["verdicts"][1]["ok"] is False
    absent = Rehearsal("u", 100, 9.0, (Verdict("kill", "a", note="did not happen"),))
    assert not absent.ok
    assert str(absent).endswith("verdict: not tested: a fault did not happen")


@pytest.mark.slow
def test_a_job_that_recovers_is_ready(estimator, tmp_path, capsys):
    faults = [Kill("algo-2", at=35), LoseHost(at=35), "interrupt:notice=10,at=35"]
    found = estimator(RECOVERS, instance_count=2, max_retry_attempts=2).rehearse(faults=faults, step_metric="step")
    assert found.ok, str(found)
    killed, lost, interrupted = found.verdicts
    assert found.steps == 60
    assert all(verdict.last == 60 for verdict in found.verdicts)
    assert [bool(verdict.again) for verdict in found.verdicts] == [True, False, False]
    assert [verdict.status for verdict in found.verdicts] == ["Failed", "Interrupted", "Interrupted"]
    assert max(killed.lost, lost.lost) in range(11)
    assert interrupted.lost <= 1
    assert all(verdict.files_before >= 2 and verdict.files_after == 2 for verdict in found.verdicts)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": training job ")[0] for line in lines if line.endswith(" started")] == [
        "undisturbed", "kill:host=algo-2,at=35", "lose-host:at=35", "interrupt:notice=10.0,at=35",
    ]  # fmt: skip
    assert killed.job.startswith("rehearsal-kill-train-20")
    assert not Path("/never/written").exists()
    until(lambda: not processes_naming(str(tmp_path / "data")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments", "fault", "problem"),
    [
        (SAVES_AT_THE_END, {}, Kill(), "steps were lost: save a checkpoint to /opt/ml/checkpoints every N steps"),
        (BEGINS_AT_ITS_START, {}, Kill(), "steps were lost: restore the newest checkpoint of /opt/ml/checkpoints"),
        (BEGINS_AT_ITS_START, {"checkpoint_s3_uri": None}, Kill(), "steps were lost: give checkpoint_s3_uri"),
        (CANNOT_RESTORE, {}, Kill(), "it did not recover: "),
        (NAMES_NO_STEP, {}, Kill(), "no value of the metric 'step'"),
    ],
    ids=["saves once", "begins again", "no location", "cannot restore", "no step"],
)
def test_a_script_that_does_not_recover_is_not_ready_and_told_why(estimator, script, arguments, fault, problem):
    found = estimator(script, **arguments).rehearse(faults=fault, step_metric="step")
    assert not found.ok
    assert problem in str(found)


@pytest.mark.slow
def test_a_script_that_ends_before_its_last_step_is_not_ready(estimator):
    early = ENDS_EARLY.replace("sys.exit(0)", "os._exit(0)").replace("signal, sys", "os, signal")
    (verdict,) = estimator(early).rehearse(faults=Interrupt(at=20), step_metric="step").verdicts
    assert not verdict.ok
    assert verdict.before in range(20, 40)


@pytest.mark.slow
def test_the_host_that_lost_the_most_counts(estimator):
    only_first = RECOVERS.replace("if step % 10 == 0 or stop:", "if os.environ['SM_CURRENT_HOST'] == 'algo-1':")
    found = estimator(only_first, instance_count=2).rehearse(faults=Kill("algo-1", at=35), step_metric="step")
    (verdict,) = found.verdicts
    assert (verdict.first, verdict.ok) == (0, False)


@pytest.mark.slow
def test_a_fault_that_cannot_happen_is_told(estimator):
    found = estimator(RECOVERS).rehearse(faults=[Kill(at=1000)], step_metric="step")
    assert not found.ok
    assert found.verdicts[0].cells()[1] == "the job ended before step 1000"


@pytest.mark.slow
def test_an_estimator_of_a_cluster_is_rehearsed_on_this_machine(estimator, tmp_path):
    class Ours(Estimator):
        def __init__(self, script):
            super().__init__(
                entry_point=str(script), instance_type="slurm", instance_count=1,
                platform=Slurm(partition="gpu", data_dir=tmp_path / "jobs"), metric_definitions=[{"Name": "step", "Regex": "step ([0-9]+)"}],
            )  # fmt: skip

    estimator(RECOVERS)
    found = Ours(tmp_path / "code" / "train.py").rehearse(faults=Kill(at=30), step_metric="step")
    assert found.steps == 60
    assert (tmp_path / "jobs" / "jobs" / found.job).is_dir()


@pytest.mark.slow
def test_a_signal_to_the_client_ends_the_job(estimator, tmp_path):
    (tmp_path / "temporary").mkdir()
    estimator("import time; print('up', flush=True); open('/opt/ml/checkpoints/kept', 'w').close(); time.sleep(600)")
    words = (PROGRAM, "rehearse", "train.py", "--checkpoint-s3-uri", "kept", *STEPS)
    process = subprocess.Popen(
        words, cwd=tmp_path / "code", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    logs = tmp_path / "data" / "jobs"
    until(lambda: any("up" in path.read_text() for path in logs.glob("*/logs/*.log")))
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert not list((tmp_path / "temporary").glob("scriptmode-rehearsal-*"))
    states = [JobFolder(path).read_state() for path in logs.iterdir()]
    assert all(state.ended for state in states)
    until(lambda: not processes_naming(str(tmp_path / "data")))


@pytest.mark.slow
def test_the_command_prints_verdicts_and_its_exit_code_says_whether_the_job_is_ready(estimator, tmp_path):
    estimator(SAVES_AT_THE_END)
    words = (PROGRAM, "rehearse", "train.py", "--checkpoint-s3-uri", "kept", "--fault", "kill:at=20", *STEPS)
    run = {"cwd": tmp_path / "code", "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run((*words, "--json"), check=False, **run)
    assert done.returncode == 1, done.stderr
    assert "kill:at=20" in done.stderr
    found = json.loads(done.stdout)
    assert (found["ok"], found["verdicts"][0]["first"]) == (False, 0)
    described = subprocess.run((PROGRAM, "describe", found["job"]), check=False, **run)
    (checkpoints,) = (line for line in described.stdout.splitlines() if line.startswith("checkpoints "))
    assert checkpoints.endswith(" (does not exist)")
    named = subprocess.run((*words, "--job-name", "one"), check=False, **run)
    assert "rehearse starts several jobs, but --job-name 'one' is the name of one" in named.stderr
    refused = subprocess.run((PROGRAM, "rehearse", "train.py", "--fault", "kil", *STEPS), check=False, **run)
    assert refused.returncode == 2
    assert refused.stderr.strip().startswith("scriptmode: faults has 'kil'; did you mean 'kill'"), refused.stderr
