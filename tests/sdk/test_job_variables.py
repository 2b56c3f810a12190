"""What every host of a job on this machine is told beside its own variables."""

from types import SimpleNamespace

import pytest

from scriptmode.platforms.local.hosts import job_variables
from scriptmode.request.parse import parse_request

GRACE = "SCRIPTMODE_STOP_GRACE_SECONDS"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (None, "20"),
        ("", "20"),
        ("5", "5"),
        ("0.5", "0.5"),
        ("20", "20"),
        ("21", "20"),
        ("20.5", "20"),
        ("1e3", "20"),
        ("soon", "soon"),
        ("nan", "nan"),
        ("inf", "inf"),
    ],
)
def test_a_job_may_ask_for_less_time_to_stop_than_the_platform_grants(asked, told):
    job = SimpleNamespace(
        request=parse_request({"TrainingJobName": "job-1"}), region="us-east-1", arn="arn:aws:x", stop_grace=20.0
    )
    assert job_variables.with_job_variables({} if asked is None else {GRACE: asked}, job)[GRACE] == told
