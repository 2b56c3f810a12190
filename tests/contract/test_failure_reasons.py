"""What a process's end becomes on its way to FailureReason: shortened, and never into another statement."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fakes.host_folders import write_host
from hypothesis import example, given
from hypothesis import strategies as st

from scriptmode.platforms.local.store.description import algorithm_error, render_describe_response
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.request.parse import parse_request
from scriptmode_runtime import contract, environment, report
from scriptmode_runtime.plan import ProcessSpec
from scriptmode_runtime.report.hints import _TABLE, hint

SPEC = ProcessSpec("script", ("/venv/bin/python", "train.py"), {}, "/")
ERROR = "ValueError: the loss is not a number"
OUTPUTS = st.tuples(st.integers(0, 60), st.integers(0, 1200), st.integers(0, 1200), st.booleans())
STATUSES = st.sampled_from([-9, -11, -7, -4, 1, 126, 127])


def reason_of(status, output, host="algo-1"):
    """Return FailureReason for a process that ended so on ``host``, through the runtime's file and the job's state."""
    with TemporaryDirectory() as folder:
        base = write_host(Path(folder) / "ml", host, hosts=[host])
        cause = report.describe(environment.read(str(base), {}), SPEC, status, output)
        report.write(str(base / "output"), cause)
        said = (base / "output" / "failure").read_text()
    state = starting_state("job", "arn", 0.0).with_status("Failed", 1.0, reason=algorithm_error(said, cause.exit_code))
    return render_describe_response(parse_request({}), state)["FailureReason"], cause.exit_code


def output_of(lines, width, last, *, fails):
    noise = "".join(f"{number} {'x' * width}\n" for number in range(lines))
    frames = "".join(f'  File "m{number}.py", line {number}, in f\n    f()\n' for number in range(lines))
    error = f"Traceback (most recent call last):\n{frames}{ERROR}{'y' * last}\n" if fails else f"{'z' * last}\n"
    return noise + error


@pytest.mark.slow
@given(OUTPUTS, STATUSES)
@example((20, 60, 30, False), -9)
@example((20, 60, 30, True), -9)
def test_a_hint_is_whole_or_absent_and_the_rest_is_always_there(shape, status):
    lines, width, last, fails = shape
    output = output_of(lines, width, last, fails=fails)
    reason, code = reason_of(status, output)
    first, _, rest = reason.partition("\n")
    how = f"killed by {report.signal_name(-status)}" if status < 0 else f"exit code {status}"
    assert len(reason) <= contract.FAILURE_LIMIT
    assert first.startswith(f"AlgorithmError: algo-1, script: {how}")
    assert reason.endswith(f", exit code: {code}")
    assert not fails or ERROR in reason
    advice = hint(output, code, SPEC)
    assert not advice or rest.removesuffix(f", exit code: {code}").split("\n")[0] == advice, reason


@pytest.mark.slow
@given(st.integers(0, 60_000))
@example(290)
@example(1000)
def test_a_hint_with_a_very_long_name_in_it_is_left_out_whole(length):
    name = "m" * length
    output = f"Traceback (most recent call last):\n  File\nModuleNotFoundError: No module named '{name}'\n"
    reason, code = reason_of(1, output)
    advice = hint(output, code, SPEC)
    assert len(reason) <= contract.FAILURE_LIMIT
    assert reason.startswith("AlgorithmError: algo-1, script: exit code 1\n")
    assert "ModuleNotFoundError: No module" in reason
    assert advice in reason or "source_dir" not in reason


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
    for row in _TABLE:
        if not row.pattern and row.exit_code > 128:
            assert re.match(r"If |Usually ", row.advice), row.advice
