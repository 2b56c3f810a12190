"""Damage in one job's folder: every verb reports it in a line, none hangs, and all other jobs are as they were.

Each file of a folder has each kind of damage in turn, of a job that ended and of one whose agent died. The two records
without which there is no job meet every verb, the other files ``list``, ``describe`` and a few others. The damage and
the few are seeded: a failure names the seed. ``--tier thorough`` has both kinds of job for each damage of each file; else
they take turns in the files that are not records.
"""

import json
import os
import random
import shutil
import signal
from contextlib import contextmanager

import pytest
from fakes.command_line import invoke
from fakes.local_jobs import LocalJobs
from fakes.processes import until
from fakes.promptness import stretched
from faults.damage import KINDS, erase

from scriptmode._core.spec.host_values import HostActivity
from scriptmode_cli._options.options import complete_job
from scriptmode_local import LocalPlatform
from scriptmode_local._store.host_activity import write_usage
from scriptmode_runtime._processes import proc

pytestmark = [pytest.mark.long, pytest.mark.slow]
SEED = 8
SECONDS = 20
VICTIM, GOOD = "victim", "good"
FILES = [
    "state.json", "job.json", "processes.json", "progress.json", "usage", "usage/algo-1.json", "stop", "agent.lock", "agent.log", "logs", "logs/algo-1.log",
    "output", "output/model.tar.gz", "channels", "hosts", "",
]  # fmt: skip
#: Verbs that read, then those that write; {new} is a folder that does not exist.
VERBS = [
    "list", "list --json", "list --status Failed", "describe", "describe --json", "logs", "logs --json",
    "logs --tail 1", "logs --host algo-1", "metrics", "metrics --json", "metrics loss", "stop", "stop --now --json", "stop --wait",
    "logs -f --plain", "logs -f --json", "model download {new}", "model download {new} --no-extract",
    "rerun --job-name good --no-wait",
]  # fmt: skip
#: Verbs whose errors may be about a metric, or about the job to be started.
OF_THE_REQUEST = ("metrics", "rerun")
#: Files without which there is no job.
RECORDS = ("state.json", "job.json")
SCRIPT = """
    import os
    print("loss=0.5", flush=True)
    open(os.environ["SM_MODEL_DIR"] + "/weights", "w").write("w")
"""


@pytest.fixture(scope="module")
def store(memory_folder):
    """A data directory with a job that completed, its description, and a copy of it to be damaged."""
    jobs = LocalJobs(memory_folder)
    jobs.completed(jobs.start(SCRIPT, metrics={"loss": "loss=([0-9.]+)"}, more={"TrainingJobName": GOOD}))
    until(lambda: not proc.is_running(jobs.agent(GOOD)))
    (jobs.job_folder(GOOD).path / "progress.json").write_text(
        json.dumps([{"channel": "train", "mode": "File", "done": 1, "total": 2, "epoch": None}])
    )
    write_usage(jobs.job_folder(GOOD).usage_file("algo-1"), {"algo-1": HostActivity(cpu_percent=1.0)})
    return jobs


@pytest.fixture
def victim(store, monkeypatch):
    """Copy the job again: as it ended, or as one whose agent died in Training."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(store.data_dir))
    path = store.job_folder(VICTIM).path

    def make(*, is_left):
        erase(path)
        shutil.copytree(store.job_folder(GOOD).path, path)
        for file in ("state.json", "job.json"):
            text = (path / file).read_text()
            (path / file).write_text(text.replace(f'"{GOOD}"', f'"{VICTIM}"').replace(f"/{GOOD}/", f"/{VICTIM}/"))
        if is_left:
            state = json.loads((path / "state.json").read_text())
            state["transitions"] = state["transitions"][:3]
            state.update(training_ended=None, artifacts="")
            (path / "state.json").write_text(json.dumps(state))
        return path

    yield make
    erase(path)


@contextmanager
def promptly(what):
    """Raise TimeoutError in a block that takes too long."""

    def give_up(*_):
        raise TimeoutError(f"{what} hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(round(stretched(SECONDS)))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def words(verb, folder):
    """Return the words of a verb's call about the victim."""
    name, *rest = verb.format(new=folder).split()
    if name == "list":
        return [name, *rest]
    if name == "model":
        return [name, rest[0], VICTIM, *rest[1:]]
    return [name, VICTIM, *rest]


def check_others(baseline, where):
    """Assert that the other job is listed and described as before the damage; return all listed jobs by name."""
    with promptly(where):
        listed = json.loads(invoke("list", "--json").stdout)
    assert [job for job in listed if job["TrainingJobName"] == GOOD] == [baseline["listed"]], where
    assert invoke("describe", GOOD, "--json").stdout == baseline["described"], where
    return {job["TrainingJobName"]: job for job in listed}


@pytest.fixture
def baseline(store, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(store.data_dir))
    (listed,) = json.loads(invoke("list", "--json").stdout)
    return {"listed": listed, "described": invoke("describe", GOOD, "--json").stdout}


@pytest.mark.parametrize("file", FILES, ids=[file or "the folder" for file in FILES])
def test_every_verb_reports_every_damage(file, baseline, victim, tmp_path, pytestconfig):
    for number, (kind, damage) in enumerate(KINDS.items()):
        rng = random.Random(f"{SEED} {file} {kind}")
        both = file in RECORDS or pytestconfig.option.tier == "thorough"
        for is_left in (False, True) if both else (bool((number + FILES.index(file)) % 2),):
            all_of_them = file in RECORDS and is_left == bool(number % 2)
            followed = ("logs -f --plain",) * file.endswith("model.tar.gz")
            for verb in VERBS if all_of_them else ("describe", "list", *followed, *rng.sample(VERBS[4:], 3)):
                path = victim(is_left=is_left)
                damage(path / file if file else path, rng)
                where = f"{verb} after {kind} of {file!r}, left={is_left}"
                with promptly(where):
                    done = invoke(*words(verb, tmp_path / f"{number} {verb}".replace(" ", "-")))
                assert "Traceback" not in done.stderr, where
                if done.exit_code and not verb.startswith(OF_THE_REQUEST):
                    # An error names the job.
                    assert VICTIM in done.stderr, (where, done.stderr)
        there = check_others(baseline, f"list after {kind} of {file!r}")
        if there.get(VICTIM, {}).get("TrainingJobStatus") == "Unreadable":
            assert "scriptmode rm victim" in there[VICTIM]["StatusMessage"]
            # A job that cannot be read is not the newest job.
            assert invoke("describe", "--last", "--json").stdout == baseline["described"]
        assert complete_job(None, None, GOOD[:2]) == [GOOD]
        if path.is_dir():
            # What is not a job's is kept.
            is_kept = (path / "x").exists()
            with promptly("rm"):
                assert invoke("rm", "--force", VICTIM).exit_code == is_kept
            assert os.path.lexists(path) == is_kept


@pytest.mark.parametrize("kind", ["empty", "noise", "a directory", "mutated"])
def test_a_running_job_without_a_record_of_its_processes_is_still_ended(kind, tmp_path):
    jobs = LocalJobs(tmp_path)
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)", hosts=2)
    jobs.until_line(name, "algo-2: up")
    agent = jobs.agent(name)
    KINDS[kind](jobs.job_folder(name).path / "processes.json", random.Random(SEED))
    assert LocalPlatform(data_dir=jobs.data_dir).describe(name).status == "InProgress"
    os.kill(agent.pid, signal.SIGKILL)
    until(lambda: not proc.is_running(agent))
    description = jobs.platform.describe(name).response
    assert description["TrainingJobStatus"] == "Failed"
    assert "was killed or crashed in Training" in description["FailureReason"]
    assert not jobs.processes()


def test_a_running_job_whose_log_became_a_fifo_can_be_stopped(tmp_path):
    jobs = LocalJobs(tmp_path)
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)", hosts=2)
    jobs.until_line(name, "algo-2: up")
    log = jobs.job_folder(name).log("algo-1")
    log.unlink()
    os.mkfifo(log)
    jobs.platform.stop(name)
    description = jobs.wait(name, SECONDS)
    assert (description["TrainingJobStatus"], description.get("FailureReason")) == ("Stopped", None)
    assert not jobs.processes()


def test_the_error_about_an_unreadable_log_says_to_remove_the_log_only(victim):
    log = victim(is_left=False) / "logs" / "algo-1.log"
    log.unlink()
    os.mkfifo(log)
    for verb in ("logs", "logs -f --plain", "logs -f --tail 1"):
        done = invoke(*words(verb, None))
        assert done.exit_code == 1
        assert "is still running" not in done.stderr, verb
        assert f"the log of training job 'victim' cannot be read: {log}: it is not a regular file; " in done.stderr
        assert f"remove that file alone: rm {str(log)!r}" in done.stderr
        assert "scriptmode rm" not in done.stderr
    log.unlink()
    assert invoke(*words("logs -f --plain", None)).exit_code == 0
