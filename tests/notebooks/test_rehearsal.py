"""The notebook that goes from a program that loses everything to one that loses ten steps."""

import pytest
from notebooks.execution import executed

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600)]


def test_following_the_advice_twice_makes_the_job_ready():
    with executed("rehearsal") as execution:
        ready = execution.value("[each.ok for each in (first, second, third)]")
        lost = execution.value("[[verdict.lost for verdict in each.verdicts] for each in (first, second, third)]")
        text = execution.text()
    assert ready == [False, True, True]
    nothing_kept, ten_steps, noticed = lost
    assert min(nothing_kept) > 50
    assert max(ten_steps) < 20
    assert noticed[2] == 0
    assert "give checkpoint_s3_uri" in text
