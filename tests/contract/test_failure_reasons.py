"""What a process's end becomes on its way to FailureReason: shortened, and never into another statement."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fakes.host_folders import write_host
from hypothesis import example, given, strategies as st

from scriptmode._core.request.parse import parse_request
from scriptmode_local._agent.host_failure import algorithm_error
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._store.job_response import describe
from scriptmode_local._store.state import failure_from_json, starting_state
from scriptmode_runtime import _environment as environment, _report as report, contract
from scriptmode_runtime._report.hints import _OF_EXIT_CODE, hint
from scriptmode_runtime.plan import ProcessSpec

SPEC = ProcessSpec("script", ("/venv/bin/python", "train.py"), {}, "/")
ERROR = "ValueError: the loss is not a number"
OUTPUTS = st.tuples(st.integers(0, 60), st.integers(0, 1200), st.integers(0, 1200), st.booleans())
STATUSES = st.sampled_from([-9, -11, -7, -4, 1, 126, 127])


def ended(status, output, own=""):
    """Return FailureReason of a process that ended so, and the platform's texts that it is made from.

    ``own`` is what the script wrote into the failure file.
    """
    with TemporaryDirectory() as folder:
        base = write_host(Path(folder) / "ml")
        (base / "output").mkdir(exist_ok=True)
        (base / "output" / "failure").write_text(own)
        cause = report.describe(environment.read(str(base), {}), SPEC, status, output)
        report.write(str(base / "output"), cause)
        sandbox = Sandbox("algo-1", base)
        failure, record = sandbox.read_failure(), failure_from_json(sandbox.read_failure_record())
    reason = algorithm_error(failure, cause.exit_code)
    state = starting_state("job", "arn", 0.0).with_status("Failed", 1.0, reason=reason)
    return describe(parse_request({}), state).response["FailureReason"], failure, record


def output_of(lines, width, last, fails):
    noise = "".join(f"{number} {'x' * width}\n" for number in range(lines))
    frames = "".join(f'  File "m{number}.py", line {number}, in f\n    f()\n' for number in range(lines))
    error = f"Traceback (most recent call last):\n{frames}{ERROR}{'y' * last}\n" if fails else f"{'z' * last}\n"
    return noise + error


@pytest.mark.slow
@given(OUTPUTS, STATUSES)
@example((20, 60, 30, False), -9)
@example((20, 60, 30, True), -9)
def test_a_hint_is_whole_or_absent_and_the_rest_is_always_there(shape, status):
    output, fails = output_of(*shape), shape[-1]
    reason, _, record = ended(status, output)
    first, _, rest = reason.partition("\n")
    how = f"killed by {report.signal_name(-status)}" if status < 0 else f"exit code {status}"
    assert len(reason) <= contract.FAILURE_LIMIT
    assert first.startswith(f"AlgorithmError: algo-1, script: {how}")
    assert reason.endswith(f", exit code: {record.exit_code}")
    assert not fails or ERROR in reason
    advice = hint(output, record.exit_code, SPEC)
    assert not advice or rest.removesuffix(f", exit code: {record.exit_code}").split("\n")[0] == advice, reason


@pytest.mark.slow
@given(OUTPUTS, STATUSES, st.integers(0, 3000), st.sampled_from(["x", "caf\u00e9 \U0001f600 "]))
@example((60, 1200, 0, True), 1, 0, "x")
@example((0, 0, 0, True), 1, 990, "x")
def test_a_text_is_cut_once_and_the_record_has_the_whole_hint(shape, status, length, letters):
    output = output_of(*shape)
    own = (letters * length)[:length].strip()
    reason, failure, record = ended(status, output, own)
    assert len(reason) <= contract.FAILURE_LIMIT
    assert reason == algorithm_error(failure, record.exit_code), "it was cut again"
    assert own.startswith(failure) if own else failure.startswith("algo-1, script: ")
    assert record.hint == hint(output, record.exit_code, SPEC)
    assert len(record.traceback) <= contract.TRACEBACK_LIMIT


@given(st.lists(st.text("abc .", max_size=300), max_size=40), st.integers(60, 1024))
def test_shortening_leaves_out_whole_lines(lines, limit):
    text = "\n".join(lines)
    short = contract.shorten(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    elif len(lines) > 1 and len(lines[0]) + len(lines[-1]) + len("\n[...]\n") <= limit:
        before, mark, after = short.partition("\n[...]\n")
        assert mark
        assert before == lines[0]
        assert after.split("\n") == lines[-len(after.split("\n")) :]


def test_a_signal_from_outside_is_not_stated_as_a_lack_of_memory_or_a_crash():
    for exit_code, advice in _OF_EXIT_CODE.items():
        assert exit_code <= 128 or re.match(r"If |Usually ", advice), advice
