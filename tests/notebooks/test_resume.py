"""The notebook of a job that is stopped in the middle and of the one that goes on from there."""

import re

import pytest
from notebooks.execution import executed

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600)]

EPOCHS, STEPS_OF_EPOCH, STOP_AT = 3, 156, 50
LAST = EPOCHS * STEPS_OF_EPOCH


@pytest.fixture(scope="module")
def resumed():
    with executed("checkpoint_and_resume", EPOCHS=EPOCHS, STOP_AT=STOP_AT) as execution:
        execution.logs = execution.value(
            "{name: [event.message for event in job.logs()] for name, job in jobs.items()}"
        )
        yield execution


def found(lines, pattern):
    """What the pattern's group matched in the one line that it matches."""
    (match,) = filter(None, (re.match(pattern, line) for line in lines))
    return match[1]


def test_a_job_is_stopped_in_the_middle_and_the_next_goes_on_from_the_very_step(resumed):
    step = found(resumed.logs["stopped"], r"stopped at step (\d+)")
    assert resumed.value("stopped.status") == "Stopped"
    assert STOP_AT <= int(step) < LAST
    assert found(resumed.logs["resumed"], r"resumed at step (\d+)") == step
    assert not [line for line in resumed.logs["never stopped"] if line.startswith("resumed")]
    made = [int(value) for value in resumed.value("resumed.metrics().values('step')")]
    assert min(made) > int(step)


def test_it_ends_with_the_step_and_the_accuracy_of_a_job_that_was_never_stopped(resumed):
    ends = {
        name: re.search(r"finished at step (\d+): accuracy=(\S+)", "\n".join(resumed.logs[name]))
        for name in ("resumed", "never stopped")
    }
    assert {name: int(end[1]) for name, end in ends.items()} == {"resumed": LAST, "never stopped": LAST}
    accuracies = [float(end[2]) for end in ends.values()]
    # Three epochs of the subset give 0.84 to 0.86; guessing gives 0.10.
    assert min(accuracies) > 0.75
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.02)


def test_the_loss_goes_on_where_it_was(resumed):
    first = resumed.value("curves['stopped'][1][0]")
    last, whole = (resumed.value(f"curves[{name!r}][1][-1]") for name in ("resumed", "never stopped"))
    assert last < first / 2
    assert last == pytest.approx(whole, abs=0.05)
    assert len(resumed.pictures()) == 1
