"""Why a host failed whose image has not this project's runtime, as its failure file and its log tell it."""

import pytest
from fakes.sagemaker_jobs import started
from hypothesis import example, given
from hypothesis import strategies as st

from scriptmode import TrainingJobFailed
from scriptmode.failure import parse_failure_reason
from scriptmode.platforms.foreign_failure import describe_foreign_failure, lacks_reason
from scriptmode.platforms.local.store.description import algorithm_error
from scriptmode.testing import Life
from scriptmode_runtime import contract

#: sagemaker-training 4.8.3 on a script that raised an exception of its own.
TOOLKIT = 'ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""\nCommand "/opt/aws/bin/python3.11 train.py"'
TRACEBACK = 'Traceback (most recent call last):\n  File "/opt/ml/code/train.py", line 3, in <module>\n    train()\n'
ERROR = "train.Diverged: the loss is not a number"
LOG = f"""2026-11-22 10:00:00,000 sagemaker-training-toolkit INFO     Invoking user script
epoch 1
{TRACEBACK}{ERROR}
2026-11-22 10:00:01,000 sagemaker-training-toolkit INFO     Waiting for the process to finish and give a return code.
2026-11-22 10:00:01,100 sagemaker-training-toolkit ERROR    Reporting training FAILURE
2026-11-22 10:00:01,200 sagemaker-training-toolkit ERROR    {TOOLKIT}
"""


@pytest.mark.parametrize("text", ["", TOOLKIT])
def test_the_reason_ends_with_the_logs_traceback(text):
    assert lacks_reason(text)
    reason, failure = describe_foreign_failure("algo-1", 1, text, LOG)
    assert reason.endswith(f"\n{TRACEBACK}{ERROR}")
    assert "toolkit" not in reason
    assert 'ErrorMessage ""' not in reason
    assert (failure.host, failure.exit_code, failure.exception) == ("algo-1", 1, "train.Diverged")
    assert failure.traceback == f"{TRACEBACK}{ERROR}"


def test_frames_whose_indentation_the_toolkit_lost_are_restored():
    log = LOG.replace("    train()", "\ntrain()\n^^^^^^").replace("  File", "File")
    reason, failure = describe_foreign_failure("algo-1", 1, TOOLKIT, log)
    assert reason.endswith(f"{TRACEBACK}    ^^^^^^\n{ERROR}")
    assert failure.exception == "train.Diverged"


def test_the_first_line_is_the_toolkits_or_names_the_launcher():
    by_toolkit = describe_foreign_failure("algo-2", 1, TOOLKIT, LOG)
    silent = describe_foreign_failure("algo-2", 1, "", LOG)
    assert by_toolkit[0].startswith('ExecuteUserScriptError:\nExitCode 1\nCommand "/opt/aws')
    assert (by_toolkit[1].cause, by_toolkit[1].process) == ("algo-2: ExecuteUserScriptError", "script")
    assert silent[0].startswith("algo-2: the host's launcher ended with exit code 1\nTraceback")
    assert (silent[1].cause, silent[1].process) == ("algo-2: the host's launcher ended with exit code 1", "launcher")


def test_a_text_that_names_the_error_is_left_as_it_is():
    assert not lacks_reason(TOOLKIT.replace('""', '"ValueError: the loss is not a number"'))


def test_a_host_that_was_killed_is_not_described_by_an_earlier_traceback():
    reason, failure = describe_foreign_failure("algo-1", -9, "", f"{TRACEBACK}{ERROR}\nepoch 2\n")
    assert reason.startswith("algo-1: the host's launcher was killed by SIGKILL; its log ends with\n")
    assert (failure.signal, failure.exit_code, failure.exception) == ("SIGKILL", 137, "")


def test_a_log_without_a_traceback_is_shown_by_its_last_lines():
    lines = [f"line {number}" for number in range(40)]
    reason, failure = describe_foreign_failure("algo-1", 7, "", "\n".join(lines))
    assert reason == "algo-1: the host's launcher ended with exit code 7; its log ends with\n" + "\n".join(lines[-12:])
    assert describe_foreign_failure("algo-1", 7, "", "")[0] == "algo-1: the host's launcher ended with exit code 7"
    assert failure.traceback == "\n".join(lines[-12:])


def test_the_failure_has_the_hint_of_the_logs_error():
    log = f"{TRACEBACK}ModuleNotFoundError: No module named 'pandas'\n"
    assert describe_foreign_failure("algo-1", 1, TOOLKIT, log)[1].hint.startswith("pandas is not installed in ")


@given(st.sampled_from(["", TOOLKIT]), st.integers(0, 40), st.integers(0, 2000), st.integers(0, 100))
@example(TOOLKIT, 40, 0, 0)
@example(TOOLKIT, 3, 2000, 0)
def test_the_reason_fits_the_services_limit_and_has_the_error(text, frames, width, after):
    log = f"{TRACEBACK}{TRACEBACK[35:] * frames}{ERROR}{'y' * width}\n" + "the end\n" * after
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
    assert error.failure.traceback == f"{TRACEBACK}{ERROR}"
    assert ERROR in str(error)


def test_the_log_of_sagemaker_is_not_read_where_the_reason_says_what_failed():
    fake, error = failed_on_sagemaker('AlgorithmError: ErrorMessage "no", exit code: 1', algo_1=LOG)
    assert error.failure.exception == ""
    assert not [call for call in fake.calls if call.operation == "get_log_events"]


def test_a_log_of_sagemaker_that_cannot_be_read_leaves_the_reason():
    reason = "AlgorithmError: exit code: 1"
    _, error = failed_on_sagemaker(reason)
    assert error.failure.cause == "exit code 1"
    assert "exit code 1" in str(error)
