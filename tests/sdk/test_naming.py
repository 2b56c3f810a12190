import re
from datetime import datetime, timezone

import pytest

from scriptmode import SpecError
from scriptmode.spec.names import base_of_image, check_job_name, job_name

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=timezone.utc)


def test_a_job_name_is_the_base_and_the_utc_time_to_the_millisecond():
    assert job_name("tensorflow-training", NOON) == "tensorflow-training-2026-01-31-12-00-00-007"


@pytest.mark.parametrize("base", ["a" * 200, "my_model.v2", "--x--", "", "naïve café", "a-" * 60])
def test_every_base_makes_a_name_the_service_accepts(base):
    name = job_name(base, NOON)
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name)
    assert name.endswith("-2026-01-31-12-00-00-007")


@pytest.mark.parametrize("name", ["", "-a", "a_b", "a" * 64, "a\n", None])
def test_a_name_the_service_would_refuse_is_named(name):
    with pytest.raises(SpecError, match="job_name"):
        check_job_name(name)


@pytest.mark.parametrize(
    ("uri", "base"),
    [("1.dkr.ecr.us-east-1.amazonaws.com/team/my-image:2.15", "my-image"), ("img@sha256:00", "img"), ("img", "img")],
)
def test_an_image_gives_its_own_name(uri, base):
    assert base_of_image(uri) == base
