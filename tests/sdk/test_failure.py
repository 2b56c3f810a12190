"""Why a job failed, as a value: from a platform's record, from its text, or from the log of a foreign image."""

import errno
import json
import os
from dataclasses import asdict, replace

import pytest
from fakes.host_folders import write_files
from fakes.sagemaker_jobs import started
from hypothesis import example, given, strategies as st

from scriptmode import DataError, Failure, JobNotFoundError, TrainingJob, TrainingJobFailed
from scriptmode._core.request.parse import parse_description
from scriptmode._core.spec.failure_text import (
    may_succeed_again,
    parse_failure_reason,
    summarize_error,
    traceback_below_error,
)
from scriptmode._core.spec.foreign_failure import describe_foreign_failure, lacks_reason
from scriptmode.testing import Life
from scriptmode_cli._program.error_reporting import exit_code, report_error
from scriptmode_local._agent.host_failure import algorithm_error
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._store.state import failure_from_json, starting_state, state_from_json
from scriptmode_local._system.full_disk import full_disk_error
from scriptmode_runtime import _report as report, contract
from scriptmode_runtime._values.failure import HostFailure as Recorded

KILLED = Failure(
    "algo-2, worker: killed by SIGKILL", "algo-2", "worker", 137, "SIGKILL", "KeyError", "Use <less> memory", "the end"
)
DESCRIPTION = {
    "TrainingJobName": "job-1", "TrainingJobStatus": "Failed", "SecondaryStatus": "Failed",
    "FailureReason": "AlgorithmError: algo-1, script: exit code 3\nValueError: no, exit code: 3",
}  # fmt: skip
FULL = OSError(errno.ENOSPC, "No space left on device")

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


class Platform:
    """A platform that recorded the failure, or raises it."""

    def __init__(self, found, status="Failed"):
        self.found = found
        self.status = status

    def describe(self, name):
        return parse_description({**DESCRIPTION, "TrainingJobStatus": self.status})

    def failure(self, name):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        (Platform(KILLED), KILLED),
        (Platform(None), parse_failure_reason(DESCRIPTION["FailureReason"])),
        (Platform(JobNotFoundError("no")), parse_failure_reason(DESCRIPTION["FailureReason"])),
        (Platform(KILLED, "Stopped"), None),
    ],
    ids=["recorded", "not recorded", "unreadable", "not failed"],
)
def test_a_jobs_failure_is_the_recorded_one_or_what_the_reason_says(platform, expected):
    assert TrainingJob("job-1", platform).failure == expected


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
        (
            "AlgorithmError: algo-1, ps: ended while it was still needed, exit code: 1",
            Failure("algo-1, ps: ended while it was still needed", "algo-1", "ps", 1),
        ),
        ("ClientError: Data download failed: no such bucket", Failure("Data download failed: no such bucket")),
        ("AlgorithmError: failed\nsaid algo-12", Failure("failed", "algo-12", traceback="said algo-12")),
        ("AlgorithmError: , exit code: 4", Failure("exit code 4", exit_code=4)),
        ("AlgorithmError: it failed, exit code: 999", Failure("it failed")),
        ("it broke", Failure("it broke")),
        ("", Failure("the platform gave no reason")),
    ],
)
def test_a_failure_reason_is_parsed_where_it_is_all_that_is_known(reason, expected):
    assert parse_failure_reason(reason) == expected


def test_the_command_reports_the_recorded_exit_code_and_every_field(capsys):
    error = TrainingJobFailed("it failed", DESCRIPTION, KILLED)
    assert exit_code(error) == report_error(error, as_json=True) == 137
    assert exit_code(TrainingJobFailed("it failed", DESCRIPTION, Failure("no"))) == 1
    assert json.loads(capsys.readouterr().err)["failure"] == asdict(KILLED)


# --- what the agent reads and stores

FIELDS = asdict(KILLED)


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
        pytest.param(b"[" * 20_000, id="nested deeply"),
        pytest.param(json.dumps({**FIELDS, "cause": "x" * contract.FAILURE_RECORD_LIMIT}).encode(), id="too large"),
        pytest.param(b'{"cause": "\\ud800"}', id="half a character"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(json.dumps({**FIELDS, "host": ["algo-1"]}).encode(), id="a list for a text"),
        pytest.param(json.dumps({**FIELDS, "exit_code": True}).encode(), id="a boolean for a number"),
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
    write_files(tmp_path, {"failure.json": json.dumps(FIELDS)})
    (tmp_path / "ml" / "output").mkdir(parents=True)
    (tmp_path / "ml" / "output" / "failure.json").symlink_to(tmp_path / "failure.json")
    assert Sandbox("algo-1", tmp_path / "ml", root="/opt/ml").read_failure_record() is None


def test_the_texts_of_a_record_are_shortened_to_their_limits_and_unknown_fields_ignored():
    found = failure_from_json({**FIELDS, "hint": "h" * 9_000, "traceback": "x" * 29_990 + "\nthe error", "added": 1})
    assert len(found.hint) == 1024
    assert len(found.traceback) <= 3000
    assert found.traceback.endswith("\nthe error")


def test_a_state_keeps_its_failure_and_one_of_an_earlier_version_has_none():
    state = starting_state("job-1", "arn", 0.0).with_status("Failed", 1.0, reason="no", failure=KILLED)
    content = json.loads(json.dumps(state.to_json()))
    assert state_from_json(content) == state
    assert state_from_json({key: value for key, value in content.items() if key != "failure"}).failure is None
    for failure in ("text", {}, {**FIELDS, "exit_code": "1"}):
        with pytest.raises(ValueError, match="failure"):
            state_from_json({**content, "failure": failure})


@pytest.mark.parametrize(
    ("traceback", "summary"),
    [
        (TRACEBACK, '  File "w.py", line 3, in <module>\n    train()\napp.Error: no\nsuch\n[...]\nat\nall'),
        (f"Traceback (most recent call last):\nE: {'x' * 1000}", f"E: {'x' * 397} [...] {'x' * 200}"),
        ("the last words", "the last words"),
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


@pytest.mark.parametrize(
    ("exception", "code", "may_succeed"),
    [
        ("ImportError", 1, False), ("", 127, False), ("ImportError", 127, False), ("ValueError", 1, True),
        ("", None, True),
    ],
    ids=["a module is missing", "the program is missing", "both", "another error", "unknown"],
)  # fmt: skip
def test_a_failure_that_the_source_repeats_does_not_succeed_again(exception, code, may_succeed):
    assert may_succeed_again(replace(KILLED, exception=exception, exit_code=code)) is may_succeed


@pytest.mark.parametrize("frames", [2, 40], ids=["short", "long"])
def test_the_error_is_above_a_long_traceback(frames):
    calls = "".join(f'  File "/lib/library.py", line {n}, in call\n    call()\n' for n in range(frames))
    text = f'Traceback (most recent call last):\n  File "w.py", line 3, in <module>\n    train()\n{calls}ValueError: no'
    shown = traceback_below_error(replace(KILLED, exception="ValueError", traceback=text))
    error = '  File "w.py", line 3, in <module>\n    train()\nValueError: no\n\n'
    assert shown == (text if frames == 2 else error + text)


@pytest.mark.parametrize(
    ("error", "advice", "step"),
    [
        (FULL, "stage fewer files", "delete some files, or stage fewer files"),
        (FULL, "", "delete some files, or set SCRIPTMODE_DATA_DIR to a directory on another disk"),
        (DataError("it is full", advice="do this"), "stage fewer files", "it is full; do this"),
    ],
)
def test_an_error_of_a_full_disk_names_one_next_step_and_stays_itself(tmp_path, error, advice, step):
    found = full_disk_error(error, tmp_path, advice)
    assert str(found).startswith(f"the disk of {str(tmp_path)!r} is full")
    assert str(found).endswith(step)
    assert ("delete some files" in str(found)) is (error is FULL)
    assert full_disk_error(found, tmp_path, "another") is found


# --- of an image without this project's runtime

#: sagemaker-training 4.8.3 on a script that raised an exception of its own.
TOOLKIT = 'ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""\nCommand "/opt/aws/bin/python3.11 train.py"'
FRAMES = 'Traceback (most recent call last):\n  File "/opt/ml/code/train.py", line 3, in <module>\n    train()\n'
ERROR = "train.Diverged: the loss is not a number"
LOG = f"""2026-11-22 10:00:00,000 sagemaker-training-toolkit INFO     Invoking user script
epoch 1
{FRAMES}{ERROR}
2026-11-22 10:00:01,000 sagemaker-training-toolkit INFO     Waiting for the process to finish and give a return code.
2026-11-22 10:00:01,100 sagemaker-training-toolkit ERROR    Reporting training FAILURE
2026-11-22 10:00:01,200 sagemaker-training-toolkit ERROR    {TOOLKIT}
"""


LAUNCHER_ENDED = "algo-1: the host's launcher ended with exit code 1"


@pytest.mark.parametrize(
    ("text", "first", "cause", "process"),
    [
        ("", f"{LAUNCHER_ENDED}\nTraceback", LAUNCHER_ENDED, "launcher"),
        (TOOLKIT, 'ExecuteUserScriptError:\nExitCode 1\nCommand "/opt/aws', "algo-1: ExecuteUserScriptError", "script"),
    ],
    ids=["no text", "the toolkit's"],
)
def test_the_reason_begins_with_the_toolkit_or_the_launcher_and_ends_with_the_traceback(text, first, cause, process):
    assert lacks_reason(text)
    reason, failure = describe_foreign_failure("algo-1", 1, text, LOG)
    assert reason.startswith(first)
    assert reason.endswith(f"\n{FRAMES}{ERROR}")
    assert "toolkit" not in reason
    assert 'ErrorMessage ""' not in reason
    assert (failure.host, failure.exit_code, failure.exception) == ("algo-1", 1, "train.Diverged")
    assert (failure.traceback, failure.cause, failure.process) == (f"{FRAMES}{ERROR}", cause, process)


def test_frames_whose_indentation_the_toolkit_lost_are_restored():
    log = LOG.replace("    train()", "\ntrain()\n^^^^^^").replace("  File", "File")
    reason, failure = describe_foreign_failure("algo-1", 1, TOOLKIT, log)
    assert reason.endswith(f"{FRAMES}    ^^^^^^\n{ERROR}")
    assert failure.exception == "train.Diverged"


def test_a_host_that_was_killed_is_not_described_by_an_earlier_traceback():
    reason, failure = describe_foreign_failure("algo-1", -9, "", f"{FRAMES}{ERROR}\nepoch 2\n")
    assert reason.startswith("algo-1: the host's launcher was killed by SIGKILL; its log ends with\n")
    assert (failure.signal, failure.exit_code, failure.exception) == ("SIGKILL", 137, "")


def test_a_log_without_a_traceback_is_shown_by_its_last_lines():
    lines = [f"line {number}" for number in range(40)]
    reason, failure = describe_foreign_failure("algo-1", 1, "", "\n".join(lines))
    assert reason == f"{LAUNCHER_ENDED}; its log ends with\n" + "\n".join(lines[-12:])
    assert describe_foreign_failure("algo-1", 1, "", "")[0] == LAUNCHER_ENDED
    assert failure.traceback == "\n".join(lines[-12:])


@given(st.sampled_from(["", TOOLKIT]), st.integers(0, 40), st.integers(0, 2000), st.integers(0, 100))
@example(TOOLKIT, 40, 0, 0)
@example(TOOLKIT, 3, 2000, 0)
def test_the_reason_fits_the_services_limit_and_has_the_error(text, frames, width, after):
    log = f"{FRAMES}{FRAMES[35:] * frames}{ERROR}{'y' * width}\n" + "the end\n" * after
    reason, _ = describe_foreign_failure("algo-1", 255, text, log)
    whole = algorithm_error(reason, 255)
    assert len(whole) <= contract.FAILURE_LIMIT
    assert contract.shorten(whole, contract.FAILURE_LIMIT) == whole
    assert ERROR in whole
    assert parse_failure_reason(whole).exit_code == 255


def failed_on_sagemaker(reason, **logs):
    life = Life.failed(reason, logs={host.replace("_", "-"): [(90.0 + n, line) for n, line in enumerate(text.split("\n"))]
                                     for host, text in logs.items()})  # fmt: skip
    fake, job = started(life, instance_count=2)
    with pytest.raises(TrainingJobFailed) as caught:
        job.wait()
    return fake, caught.value


@pytest.mark.parametrize("text", ["", TOOLKIT])
def test_a_job_of_sagemaker_without_a_reason_has_the_logs_traceback(text):
    _, error = failed_on_sagemaker(f"AlgorithmError: {text}, exit code: 1", algo_1="epoch 1\nepoch 2", algo_2=LOG)
    assert (error.failure.host, error.failure.exception, error.failure.exit_code) == ("algo-2", "train.Diverged", 1)
    assert error.failure.traceback == f"{FRAMES}{ERROR}"
    assert ERROR in str(error)


def test_a_reason_stays_where_it_says_what_failed_or_there_is_no_log():
    fake, error = failed_on_sagemaker('AlgorithmError: ErrorMessage "no", exit code: 1', algo_1=LOG)
    assert error.failure.exception == ""
    assert not [call for call in fake.calls if call.operation == "get_log_events"]
    _, error = failed_on_sagemaker("AlgorithmError: exit code: 1")
    assert error.failure.cause == "exit code 1"
    assert "exit code 1" in str(error)
