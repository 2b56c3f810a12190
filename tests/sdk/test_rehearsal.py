"""Rehearsals: faults as values and texts, steps in logs, and real jobs that meet each fault."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM
from fakes.local_jobs import request_for
from fakes.processes import processes_naming, until

from scriptmode import Estimator, SpecError
from scriptmode.core.request.parse import parse_request
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.platforms.slurm.slurm_platform import Slurm
from scriptmode.rehearsal import (
    BrokenInput,
    Freeze,
    FullDisk,
    Interrupt,
    Kill,
    LoseHost,
    Rehearsal,
    SlowHost,
    SlowInput,
    Verdict,
    parse_faults,
    random_faults,
)
from scriptmode.rehearsal.findings import ScriptFindings
from scriptmode.rehearsal.steps import Count, LogWatch

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
IGNORES_SIGTERM = """
    import pathlib, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path = pathlib.Path("/opt/ml/checkpoints/weights")
    step = int(path.read_text()) if path.exists() else 0
    while step < 400:
        time.sleep(0.05)
        step += 1
        print("step", step, flush=True)
        if step % 10 == 0:
            path.write_text(str(step))
"""
ENDS_AT_SIGTERM = """
    import time
    for tick in range(60):
        print("tick", flush=True)
        time.sleep(0.05)
"""
NEVER_JOINS = """
    import os, socket, time
    print("up", flush=True)
    if os.environ["SM_CURRENT_HOST"] == "algo-2":
        time.sleep(1000)
    socket.create_server(("", 0)).accept()
"""
READS_A_PIPE = """
    import itertools, time
    read = 0
    with open("/opt/ml/input/data/train_0", "rb") as pipe:
        for step in itertools.count(1):
            if not (block := pipe.read(100_000)):
                break
            read += len(block)
            time.sleep(0.02)
            print("step", step, flush=True)
    assert read == 20_000_000, read
"""
#: Names no step, ends with 0 at SIGTERM.
WORDLESS = """
    import signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("up", flush=True)
    time.sleep(2)
"""
#: Does not see that nothing can be written any more, and cannot go on from its own checkpoint.
CARELESS = """
    import os, time
    path = "/opt/ml/checkpoints/step"
    if os.path.exists(path):
        raise RuntimeError("cannot restore")
    for step in range(1, 41):
        time.sleep(0.05)
        print("step", step, flush=True)
        try:
            with open(path, "w") as file:
                file.write(str(step))
        except OSError:
            pass
"""


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
            entry_point="train.py", source_dir=str(folder), instance_type="local_process", environment=environment, **arguments
        )  # fmt: skip

    return create


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kill", Kill()),
        ("kill:host=algo-2,process=1,at=60", Kill("algo-2", 1, "60")),
        ("freeze:at=5s", Freeze(at="5s")),
        ("lose-host:at=20%", LoseHost(at="20%")),
        ("interrupt:notice=3", Interrupt(notice=3.0)),
        ("full-disk:host=algo-1", FullDisk("algo-1")),
        ("slow-input:rate=1000", SlowInput(rate=1000.0)),
        ("broken-input:at=Training", BrokenInput(at="Training")),
        ("slow-host:factor=3", SlowHost(factor=3.0)),
    ],
)
def test_a_text_is_a_fault(text, fault):
    assert parse_faults(text) == [fault]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kil", "kill"),
        ("kill:hots=algo-1", "host"),
        ("kill:process=x", "process"),
        ("kill:at=soon", "'50%'"),
        ("interrupt:notice=0", "above 0"),
        ("slow-host:factor=inf", "above 1"),
        ("slow-host:factor=1", "above 1"),
        ("slow-input:rate=nan", "above 0"),
        ("kill:process=-1", "process is -1"),
        ("kill:at=101%", "at is '101%'"),
        ("kill:at=-1", "at is '-1'"),
        ("random:n=0", "n is 0"),
    ],
)
def test_a_wrong_text_is_refused_with_the_next_step(text, words):
    with pytest.raises(SpecError, match=words):
        parse_faults(text)


def test_another_value_than_a_fault_is_refused(estimator):
    with pytest.raises(SpecError, match=r"faults has 3.*Kill\(at=60\)"):
        estimator(RECOVERS).rehearse(faults=[3])
    with pytest.raises(SpecError, match="faults is empty"):
        estimator(RECOVERS).rehearse(faults=[])
    with pytest.raises(SpecError, match="faults has the host 'algo-3'; use one of algo-1, algo-2"):
        estimator(RECOVERS, instance_count=2).rehearse(faults=[Kill(), Freeze("algo-3")])


def test_random_faults_are_those_of_their_seed():
    assert random_faults(6, seed=1) == random_faults(6, seed=1) == parse_faults("random:n=6,seed=1")
    assert random_faults(6, seed=1) != random_faults(6, seed=2)


@pytest.mark.parametrize(
    ("lines", "total", "next_line", "resumed", "metrics"),
    [
        (["step 1", "step 2", "step 3"], 3, "step 3", 2, ()),
        (["step 0", "step 1", "step 2"], 3, "step 2", 2, ()),
        (["step 10", "step 20", "step 30"], 30, "step 30", 20, ()),
        (["step 10", "step 20"], 20, "resumed at step 20", 20, ()),
        (["resumed at step 0", "step=5 loss=1", "step=10 loss=1"], 10, "step=10 loss=1", 5, ()),
        (["from step 0", "step 1", "step 2"], 2, "from step 1", 1, ()),
        (["Epoch 1/3", "Epoch 2/3", "Epoch 3/3"], 3, "Epoch 3/3", 2, ()),
        (["batch #5", "batch #10"], 10, "batch #10", 5, [("step", r"batch #(\d+)")]),
        (["batch #5", "batch #nan", "batch #inf", "batch #10"], 10, "batch #10", 5, [("step", r"batch #(\S+)")]),
    ],
)
def test_programs_count_in_their_own_way(tmp_path, lines, total, next_line, resumed, metrics):
    folder = JobFolder(tmp_path)
    body = request_for("job")
    body["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": name, "Regex": regex} for name, regex in metrics]
    folder.log("algo-1").parent.mkdir()
    text = "\n".join([*lines, "scriptmode: the job starts again, as it was interrupted", next_line])
    folder.log("algo-1").write_text(f"no number\n{text}\n")
    watch = LogWatch(folder, parse_request(body))
    watch.read(final=True)
    watch.close()
    first, second = watch.runs["algo-1"]
    count = Count(first)
    assert (count.total, count.start(second[0])) == (total, resumed)


def test_lines_of_a_script_are_found():
    text = textwrap.dedent(SAVES_AT_THE_END) + "import signal\nsignal.signal(signal.SIGTERM, save)\n"
    found = ScriptFindings.read("train.py", text)
    assert (found.at(found.saves_once), found.at(found.handlers)) == ("train.py, line 8", "train.py, line 10")
    assert ScriptFindings.read("train.py", "for x in y:\n    model.save(x)\n").saves_once == ()
    in_function = "def keep():\n    model.save(x)\nfor x in y:\n    keep()\n"
    in_callback = "class Keep(Callback):\n    def on_epoch_end(self, *_):\n        self.model.save(x)\n"
    assert [ScriptFindings.read("train.py", text).saves_once for text in (in_function, in_callback)] == [(), ()]
    assert ScriptFindings.read("train.py", "def main():\n    model.save(x)\nmain()\n").saves_once == (2,)
    assert ScriptFindings.read("train.py", "fit(callbacks=[BackupAndRestore()])\nmodel.save(x)\n").saves_once == ()
    assert ScriptFindings.read("train.py", "this is no Python").at(()) == "train.py"


def test_the_text_of_a_rehearsal_is_what_its_verdicts_say():
    killed = Verdict(
        "Kill at 53 %",
        "a",
        "b",
        "Failed",
        0.8,
        is_cause_named=True,
        resumed=50,
        lost=10,
        lost_seconds=4.0,
        orphans=0,
        is_same_model=True,
    )
    lost = Verdict(
        "LoseHost at 53 %", "c", "", "Interrupted", 0.1, resumed=0, lost=60, problems=("all lost",), advice=("save",)
    )
    ready = Rehearsal("u", "2 x local_process", 100, "step", 9.0, 10, 4.0, (killed,))
    assert str(ready).splitlines() == [
        "undisturbed: u on 2 x local_process, 100 steps in 9.0 s of training, a checkpoint every 10 steps, 4.0 s",
        "Kill at 53 %  Failed after 0.8 s, first cause named  resumed at 50: 10 steps (4.0 s) lost  orphans 0",
        (
            "verdict: ready: lost at most 10 steps; a lost host costs up to the time between two checkpoints: 10 steps, "
            "4.0 s. Model equal to that of the undisturbed job: yes"
        ),
    ]  # fmt: skip
    assert ready.ok
    slow = Verdict("SlowHost at 53 %", "d", status="Completed", noticed=3.0, orphans=0)
    assert str(Rehearsal("u", "1 x local_process", verdicts=(slow,))).endswith("verdict: ready: no fault ended the job")
    both = Rehearsal("u", "1 x local_process", verdicts=(killed, lost))
    assert not both.ok
    assert str(both).splitlines()[-3:] == [
        "problem: LoseHost at 53 %: all lost", "change: save", "verdict: not ready: 1 problem",
    ]  # fmt: skip
    assert json.loads(json.dumps(both.to_dict()))["verdicts"][1]["ok"] is False


def test_nothing_is_said_of_what_was_not_observed():
    absent = Verdict("BrokenInput at 53 %", "a", note="did not happen: nothing is fed")
    silent = Verdict("Kill at 53 %", "b", "c", "Failed", 0.8, is_cause_named=True, orphans=0)
    untested = Rehearsal("u", "1 x local_process", verdicts=(absent,))
    assert not untested.ok
    assert str(untested).splitlines() == [
        "undisturbed: u on 1 x local_process",
        "BrokenInput at 53 %  did not happen: nothing is fed",
        "verdict: not tested: no fault happened",
    ]
    part = Rehearsal("u", "1 x local_process", save_seconds=3.0, verdicts=(absent, silent))
    assert part.ok
    assert (
        str(part).splitlines()[-1] == "verdict: ready: the job completed after each fault; 1 of 2 faults did not happen"
    )


@pytest.mark.slow
def test_a_job_that_recovers_is_ready(estimator, tmp_path, capsys):
    faults = [Kill("algo-2", at=35), LoseHost(at=35), Interrupt(notice=10, at=35), "full-disk:host=algo-1"]
    found = estimator(RECOVERS, instance_count=2, max_retry_attempts=2).rehearse(faults=faults)
    assert found.ok, str(found)
    killed, lost, interrupted, full = found.verdicts
    # A save is seen with the step whose line was the last one then.
    assert (found.steps, found.save_steps) in ((60, 10), (60, 11))
    assert (killed.status, killed.is_cause_named) == ("Failed", True)
    assert killed.lost in range(10)
    assert (lost.status, lost.again) == ("Interrupted", "")
    # On a busy machine a step is seen some steps later.
    assert {killed.resumed, lost.resumed} <= {30, 40, 50}
    assert interrupted.status == "Interrupted"
    assert interrupted.lost == 0
    assert interrupted.resumed in range(30, 60)
    assert (full.status, full.is_cause_named) == ("Failed", True)
    assert all(each.is_same_model and not each.orphans for each in found.verdicts)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": training job ")[0] for line in lines if line.endswith(" started")] == [
        "undisturbed", "Kill algo-2 at step 35", "LoseHost at step 35", "Interrupt, 10 s notice, at step 35",
        "FullDisk algo-1 at 53 %",
    ]  # fmt: skip
    assert len(lines) == 10
    assert found.job.startswith("rehearsal-undisturbed-train-20")
    assert killed.job.startswith("rehearsal-kill-train-20")
    # The other one saved when it was stopped.
    assert killed.host == "algo-2"
    assert not Path("/never/written").exists()
    stored = JobFolder(tmp_path / "data" / "jobs" / found.job).read_rehearsal()
    assert stored == json.loads(json.dumps(found.to_dict()))
    until(lambda: not processes_naming(str(tmp_path / "data")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments", "advice"),
    [
        (SAVES_AT_THE_END, {}, "train.py, line 8 saves once, outside of the loop: save to /opt/ml/checkpoints"),
        (BEGINS_AT_ITS_START, {}, "train.py: checkpoints were in /opt/ml/checkpoints, and it began at its start"),
        (BEGINS_AT_ITS_START, {"checkpoint_s3_uri": None}, "give checkpoint_s3_uri (--checkpoint-s3-uri)"),
    ],
)
def test_a_script_that_loses_everything_is_told_what_to_change(estimator, script, arguments, advice):
    found = estimator(script, **arguments).rehearse(faults=Kill())
    (verdict,) = found.verdicts
    assert (verdict.resumed, verdict.ok, found.ok) == (0, False, False)
    assert verdict.problems[0] == f"all of its {verdict.lost} steps were lost"
    assert verdict.advice[0].startswith(advice)


@pytest.mark.slow
def test_a_fault_at_an_epoch_is_told_as_one(estimator, capsys):
    script = RECOVERS.replace('"resumed at step", step', '"resumed"').replace('"step", step', 'f"Epoch {step}/60"')
    (verdict,) = estimator(script).rehearse(faults=Kill(at=35)).verdicts
    assert (verdict.fault, verdict.unit) == ("Kill at epoch 35", "epoch")
    assert f"Kill at epoch 35: training job {verdict.job} started" in capsys.readouterr().err.splitlines()


@pytest.mark.slow
def test_the_host_that_began_again_is_named(estimator):
    only_first = RECOVERS.replace("if step % 10 == 0 or stop:", "if os.environ['SM_CURRENT_HOST'] == 'algo-1':")
    (verdict,) = estimator(only_first, instance_count=2).rehearse(faults=Kill("algo-1", at=35)).verdicts
    assert (verdict.host, verdict.resumed) == ("algo-2", 0)
    assert verdict.cells()[2].startswith(f"algo-2 began again at 0: {verdict.lost} steps")
    assert verdict.problems == (f"all {verdict.lost} steps of algo-2 were lost",)


@pytest.mark.slow
def test_a_script_that_goes_on_after_the_notice_is_told_which_line_to_change(estimator):
    found = estimator(IGNORES_SIGTERM).rehearse(faults=Interrupt(notice=3))
    (verdict,) = found.verdicts
    assert verdict.problems == ("the script ran until SIGKILL, 3 s after SIGTERM",)
    at_once = estimator(ENDS_AT_SIGTERM).rehearse(faults=Interrupt(notice=0.5)).verdicts[0]
    assert at_once.status == "Stopped"
    assert at_once.problems == ("its log names no step, so that what it lost is not known",)
    assert verdict.advice[0] == "train.py, line 3: save within the notice after SIGTERM, and end with exit code 143"


@pytest.mark.slow
def test_a_script_that_names_no_step_is_told_to(estimator):
    (verdict,) = estimator(WORDLESS, max_retry_attempts=2).rehearse(faults=Interrupt(at="1s")).verdicts
    assert verdict.problems == ("its log names no step, so that what it lost is not known",)
    assert [each.partition(":")[0].partition(" after")[0] for each in verdict.advice] == [
        "print(f'step {step}', flush=True)", "train.py, line 3",
    ]  # fmt: skip
    assert verdict.advice[1].endswith("end with exit code 143 after SIGTERM: 0 says that the training is complete")


@pytest.mark.slow
def test_a_script_that_does_not_see_a_full_disk_or_cannot_restore_is_told_so(estimator):
    found = estimator(CARELESS).rehearse(faults=[FullDisk(), Kill()])
    full, killed = found.verdicts
    assert full.problems == ("it completed although none of its files could be written",)
    assert full.advice == ("train.py: close each file that it writes, and let errors of writing end it",)
    (problem,) = killed.problems
    assert problem.startswith(
        f"it did not complete after it was started again: {killed.again} failed: algo-1, script: "
    )
    assert problem.endswith(f": RuntimeError: cannot restore (its log: scriptmode logs {killed.again})")


@pytest.mark.slow
def test_hosts_that_wait_for_each_other_are_told_with_their_lines(estimator):
    hang = {"SCRIPTMODE_HANG_SECONDS": "3"}
    found = estimator(
        NEVER_JOINS,
        instance_count=2,
        environment=hang,
        distribution={"multi_worker_mirrored_strategy": {"enabled": True}},
    ).rehearse(faults=Kill())
    assert not found.ok
    assert not found.verdicts
    assert "no output of any host for 3 s" in found.problems[0]
    assert found.problems[0].endswith("; algo-1 waits in train.py, line 6; algo-2 waits in train.py, line 5")


@pytest.mark.slow
def test_a_frozen_host_is_noticed_and_a_slow_one_makes_all_of_them_slow(estimator):
    mirrored = {"multi_worker_mirrored_strategy": {"enabled": True}}
    found = estimator(RECOVERS, instance_count=2, distribution=mirrored).rehearse(faults=[Freeze(), SlowHost(factor=3)])
    frozen, slow = found.verdicts
    assert (frozen.status, frozen.is_cause_named) == ("Failed", True)
    assert 3 < frozen.noticed < 30
    assert slow.status == "Completed"
    assert slow.slowdown > 1.2


@pytest.mark.slow
def test_inputs_become_slow_and_break(estimator, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "part").write_bytes(bytes(20_000_000))
    found = estimator(READS_A_PIPE, input_mode="Pipe", checkpoint_s3_uri=None).rehearse(
        {"train": str(tmp_path / "train")}, [SlowInput(rate=1_000_000, at="20%"), BrokenInput(at="20%")]
    )
    slow, broken = found.verdicts
    assert slow.status == "Completed", str(found)
    assert slow.slowdown > 1.7
    assert broken.status == "Failed"
    assert broken.resumed == 0


@pytest.mark.slow
def test_a_fault_at_the_start_waits_for_the_script_and_one_in_a_status_is_in_it(estimator):
    found = estimator(RECOVERS).rehearse(faults=[Kill(at="0s"), Kill(at="Training"), Kill(at="Uploading")])
    assert [each.status for each in found.verdicts] == ["Failed", "Failed", ""]
    assert found.verdicts[2].note.startswith("did not happen: ")


@pytest.mark.slow
def test_a_fault_that_cannot_happen_is_told(estimator):
    found = estimator(RECOVERS).rehearse(faults=[BrokenInput(), Kill(process=3), Kill(at=1000)])
    assert not found.ok
    assert all(each.orphans is None for each in found.verdicts)
    assert [each.cells()[1] for each in found.verdicts] == [
        "did not happen: nothing is fed: inputs in File mode are copied before the script starts",
        "did not happen: algo-1 has no process 3 of the script, only 1",
        "did not happen: the job ended before",
    ]


@pytest.mark.slow
def test_an_estimator_of_a_cluster_is_rehearsed_on_this_machine(estimator, tmp_path):
    class Ours(Estimator):
        def __init__(self, script):
            super().__init__(
                entry_point=str(script), instance_type="slurm", instance_count=1,
                platform=Slurm(partition="gpu", data_dir=tmp_path / "jobs"),
            )  # fmt: skip

    estimator(RECOVERS)
    found = Ours(tmp_path / "code" / "train.py").rehearse(faults=Kill(at=60, process=1))
    assert (found.hosts, found.steps) == ("1 x local_process in place of slurm", 60)
    assert (tmp_path / "jobs" / "jobs" / found.job).is_dir()


@pytest.mark.slow
@pytest.mark.mpi
def test_the_rank_that_was_killed_is_named(estimator):
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    script = RECOVERS.replace('["SM_CURRENT_HOST"]', '["OMPI_COMM_WORLD_RANK"]')
    found = estimator(script, instance_count=2, distribution=mpi).rehearse(faults=Kill("algo-2", process=1, at=35))
    (verdict,) = found.verdicts
    assert verdict.is_cause_named
    assert "rank 3" in verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_to_the_client_ends_the_job(estimator, tmp_path, number, code):
    (tmp_path / "temporary").mkdir()
    estimator("import time; print('up', flush=True); open('/opt/ml/checkpoints/kept', 'w').close(); time.sleep(600)")
    words = (PROGRAM, "rehearse", "train.py", "--checkpoint-s3-uri", "kept")
    process = subprocess.Popen(
        words, cwd=tmp_path / "code", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    logs = tmp_path / "data" / "jobs"
    until(lambda: any("up" in path.read_text() for path in logs.glob("*/logs/*.log")))
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert not list((tmp_path / "temporary").glob("scriptmode-rehearsal-*"))
    states = [JobFolder(path).read_state() for path in logs.iterdir()]
    assert all(state.ended for state in states)
    until(lambda: not processes_naming(str(tmp_path / "data")))


@pytest.mark.slow
def test_the_command_prints_verdicts_and_its_exit_code_says_whether_the_job_is_ready(estimator, tmp_path):
    estimator(SAVES_AT_THE_END)
    words = (PROGRAM, "rehearse", "train.py", "--checkpoint-s3-uri", "kept", "--fault", "kill:at=20")
    run = {"cwd": tmp_path / "code", "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(words, check=False, **run)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "verdict: not ready: 1 problem"
    assert "Kill at step 20" in done.stderr
    found = json.loads(subprocess.run((*words, "--json"), check=False, **run).stdout)
    assert (found["ok"], found["verdicts"][0]["resumed"]) == (False, 0)
    described = subprocess.run((PROGRAM, "describe", found["job"]), check=False, **run)
    (checkpoints,) = (line for line in described.stdout.splitlines() if line.startswith("checkpoints "))
    assert checkpoints.endswith(" (does not exist)")
    named = subprocess.run((*words, "--job-name", "one"), check=False, **run)
    assert "rehearse starts several jobs, but --job-name 'one' is the name of one" in named.stderr
    refused = subprocess.run((PROGRAM, "rehearse", "train.py", "--fault", "kil"), check=False, **run)
    assert refused.returncode == 2
    assert refused.stderr.strip().startswith("scriptmode: faults has 'kil'; did you mean 'kill'"), refused.stderr


@pytest.mark.slow
def test_the_fixture_fails_the_test_of_a_job_that_is_not_ready(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(SAVES_AT_THE_END))
    (tmp_path / "test_training.py").write_text(
        textwrap.dedent("""
            from scriptmode import Estimator
            from scriptmode.rehearsal import Kill

            def test_it_survives(rehearse):
                rehearse(Estimator(entry_point="train.py", instance_count=1, instance_type="local_process"), faults=[Kill()])
        """)
    )
    own = f"--basetemp={tmp_path / 'temporary'}"
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", own, "test_training.py")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "verdict: not ready: 1 problem" in done.stdout
    assert "1 failed" in done.stdout
