"""Why a job failed, as a value: from a platform's record, or from the text that is all that a platform has."""

import json
import os
from dataclasses import asdict, replace

import pytest
from fakes.host_folders import write_files

from scriptmode import Failure, JobNotFoundError, TrainingJob, TrainingJobFailed
from scriptmode.cli.error_reporting import exit_code, report_error
from scriptmode.display import html_card
from scriptmode.display.snapshot import create_snapshot
from scriptmode.failure import parse_failure_reason, summarize_error
from scriptmode.platforms.local.store.state import failure_from_json, starting_state, state_from_json
from scriptmode.platforms.opt_ml import Sandbox
from scriptmode.request.parse import parse_description
from scriptmode_runtime import report
from scriptmode_runtime.contract import FAILURE_RECORD_LIMIT
from scriptmode_runtime.failure import Failure as Recorded

KILLED = Failure(
    "algo-2, worker: killed by SIGKILL", "algo-2", "worker", 137, "SIGKILL", "KeyError", "Use <less> memory", "the end"
)
DESCRIPTION = {
    "TrainingJobName": "job-1",
    "TrainingJobStatus": "Failed",
    "SecondaryStatus": "Failed",
    "FailureReason": "AlgorithmError: algo-1, script: exit code 3\nValueError: no, exit code: 3",
}

TRACEBACK = """Traceback (most recent call last):
  File "w.py", line 3, in <module>
    train()
  File "/usr/lib/python3/json.py", line 1, in f
    g()
app.Error: no
such
rate
at
all"""


class Described:
    """A platform that has one job, and no record of its failure."""

    def describe(self, name):
        return {**DESCRIPTION, "TrainingJobName": name}


class Recording(Described):
    """A platform that recorded the failure, or raises ``found``."""

    def __init__(self, found):
        self.found = found

    def failure(self, name):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            "AlgorithmError: algo-2, worker: exit code 1\nTraceback\nNameError, exit code: 1",
            Failure("algo-2, worker: exit code 1", "algo-2", "worker", 1, traceback="Traceback\nNameError"),
        ),
        (
            f"AlgorithmError: algo-1, script: exit code 1\n{TRACEBACK.replace('w.py', '/opt/ml/code/w.py')}, exit code: 1",
            Failure("algo-1, script: exit code 1", "algo-1", "script", 1, "", "app.Error", traceback=TRACEBACK),
        ),
        (
            "AlgorithmError: algo-1, rank 3: killed by SIGKILL, exit code: 137",
            Failure("algo-1, rank 3: killed by SIGKILL", "algo-1", "rank 3", 137, "SIGKILL"),
        ),
        ("AlgorithmError: algo-1, ps: ended while it was still needed, exit code: 1", None),
        (
            "ClientError: Data download failed: no such bucket",
            Failure("Data download failed: no such bucket"),
        ),
        ("AlgorithmError: failed\nsaid algo-12", Failure("failed", "algo-12", traceback="said algo-12")),
        ("AlgorithmError: , exit code: 4", Failure("exit code 4", exit_code=4)),
        ("AlgorithmError: ExecuteUserScriptError:\nExitCode 1, exit code: 999", None),
        ("it broke", Failure("it broke")),
        ("", Failure("the platform gave no reason")),
    ],
)
def test_a_failure_reason_is_parsed_where_it_is_all_that_is_known(reason, expected):
    found = parse_failure_reason(reason)
    if expected is not None:
        assert found == expected
    elif "999" in reason:
        assert (found.exit_code, found.process) == (None, "")
    else:
        assert (found.host, found.process, found.signal, found.exit_code) == ("algo-1", "ps", "", 1)


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        pytest.param(Recording(KILLED), KILLED, id="recorded"),
        pytest.param(Recording(None), parse_failure_reason(DESCRIPTION["FailureReason"]), id="not recorded"),
        pytest.param(
            Recording(JobNotFoundError("no")), parse_failure_reason(DESCRIPTION["FailureReason"]), id="unreadable"
        ),
        pytest.param(Described(), parse_failure_reason(DESCRIPTION["FailureReason"]), id="a platform without records"),
    ],
)
def test_a_jobs_failure_is_the_recorded_one_or_what_the_reason_says(platform, expected):
    assert TrainingJob("job-1", platform).failure == expected


def test_a_job_that_did_not_fail_has_no_failure():
    class Stopped(Recording):
        def describe(self, name):
            return {**super().describe(name), "TrainingJobStatus": "Stopped"}

    assert TrainingJob("job-1", Stopped(KILLED)).failure is None


def test_the_command_reports_the_recorded_exit_code_and_every_field(capsys):
    error = TrainingJobFailed("it failed", DESCRIPTION, KILLED)
    assert exit_code(error) == report_error(error, as_json=True) == 137
    assert json.loads(capsys.readouterr().err)["failure"] == asdict(KILLED)


def test_a_failure_without_an_exit_code_ends_the_command_with_1():
    assert exit_code(TrainingJobFailed("it failed", DESCRIPTION, Failure("no"))) == 1


def test_the_card_shows_the_cause_the_hint_and_the_traceback_and_names_the_host():
    snapshot = create_snapshot(parse_description(DESCRIPTION), None, failure=KILLED)
    html = html_card.render_card(snapshot, log_locations={})
    assert "<b>algo-2, worker: killed by SIGKILL</b>" in html
    assert "Use &lt;less&gt; memory\nthe end</pre>" in html
    assert snapshot.commands()[0] == "scriptmode logs job-1 --host algo-2"


# --- what the agent reads and stores

FIELDS = asdict(KILLED)
STARTED = json.loads(json.dumps(starting_state("job-1", "arn", 0.0).to_json()))


@pytest.fixture
def sandbox(tmp_path):
    (tmp_path / "output").mkdir()
    return Sandbox("algo-1", tmp_path)


def test_the_record_of_the_runtime_is_read_with_every_field(sandbox):
    recorded = Recorded(
        "algo-2", "worker", 137, f"{KILLED.cause}\nx", signal="SIGKILL", exception="KeyError", hint=KILLED.hint,
        traceback=KILLED.traceback,
    )  # fmt: skip
    report.write(str(sandbox.base / "output"), recorded)
    assert failure_from_json(sandbox.read_failure_record()) == KILLED


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 4096, id="zeros after a power cut"),
        pytest.param(json.dumps(FIELDS).encode()[:-9], id="torn"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 20_000, id="nested deeply"),
        pytest.param(b"9" * 20_000, id="a long number"),
        pytest.param(json.dumps({**FIELDS, "cause": "x" * FAILURE_RECORD_LIMIT}).encode(), id="too large"),
        pytest.param(b'{"cause": "\\ud800"}', id="half a character"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(json.dumps({**FIELDS, "host": ["algo-1"]}).encode(), id="a list for a text"),
        pytest.param(json.dumps({**FIELDS, "exit_code": True}).encode(), id="a boolean for a number"),
        pytest.param(json.dumps({**FIELDS, "exit_code": 0}).encode(), id="an exit code of success"),
        pytest.param(json.dumps({**FIELDS, "exit_code": 10**9}).encode(), id="an exit code that none is"),
    ],
)
def test_a_damaged_or_hostile_record_is_refused(sandbox, content):
    (sandbox.base / "output" / "failure.json").write_bytes(content)
    with pytest.raises(ValueError, match="failure"):
        failure_from_json(sandbox.read_failure_record())


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), str],
    ids=["a FIFO", "a directory", "a device", "missing"],
)
def test_what_is_not_a_file_is_not_read(sandbox, make):
    make(sandbox.base / "output" / "failure.json")
    assert sandbox.read_failure_record() is None


def test_a_containers_link_to_a_file_of_this_machine_is_not_followed(tmp_path):
    write_files(tmp_path, {"elsewhere/failure.json": json.dumps(FIELDS)})
    (tmp_path / "ml" / "output").mkdir(parents=True)
    (tmp_path / "ml" / "output" / "failure.json").symlink_to(tmp_path / "elsewhere" / "failure.json")
    assert Sandbox("algo-1", tmp_path / "ml", root="/opt/ml").read_failure_record() is None


def test_the_texts_of_a_record_are_shortened_to_their_limits():
    found = failure_from_json({**FIELDS, "hint": "h" * 9_000, "traceback": "x" * 29_990 + "\nthe error"})
    assert len(found.hint) == 1024
    assert len(found.traceback) <= 3000
    assert found.traceback.endswith("\nthe error")


def test_unknown_fields_of_a_record_are_ignored():
    assert failure_from_json({**FIELDS, "added": 1}) == KILLED


def test_a_state_keeps_its_failure():
    state = starting_state("job-1", "arn", 0.0).with_status("Failed", 1.0, reason="no", failure=KILLED)
    assert state_from_json(json.loads(json.dumps(state.to_json()))) == state


@pytest.mark.parametrize("failure", ["text", {}, {**FIELDS, "exit_code": "1"}])
def test_a_state_with_a_damaged_failure_is_refused(failure):
    content = {**STARTED, "failure": failure}
    with pytest.raises(ValueError, match="failure"):
        state_from_json(content)


def test_a_state_of_an_earlier_version_has_no_failure():
    assert state_from_json({key: value for key, value in STARTED.items() if key != "failure"}).failure is None


@pytest.mark.parametrize(
    ("traceback", "summary"),
    [
        (TRACEBACK, '  File "w.py", line 3, in <module>\n    train()\napp.Error: no\nsuch\nrate\nat [...]'),
        (f"Traceback (most recent call last):\nE: {'x' * 1000}", f"E: {'x' * 597} [...]"),
        ("the last words", ""),
        (
            "usage: w.py [-h]\nw.py: error: unrecognized arguments: --a\nlater",
            "w.py: error: unrecognized arguments: --a",
        ),
        ("ERROR: no versions\nERROR: No matching distribution for a==9", "ERROR: No matching distribution for a==9"),
    ],
    ids=["frames", "a long line", "no traceback", "argparse", "pip"],
)
def test_the_summary_of_an_error_is_its_location_in_the_source_and_its_first_lines(traceback, summary):
    assert summarize_error(replace(KILLED, traceback=traceback)) == summary
