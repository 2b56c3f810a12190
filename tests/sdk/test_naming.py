"""Names of jobs, and which known word a misspelt one is most similar to."""

import re
from datetime import datetime, timezone

import pytest

from scriptmode._core.spec.names import job_name
from scriptmode._core.text.messages import did_you_mean

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=timezone.utc)


def test_a_job_name_is_the_base_and_the_utc_time_to_the_millisecond():
    assert job_name("tensorflow-training", NOON) == "tensorflow-training-2026-01-31-12-00-00-007"


@pytest.mark.parametrize("base", ["a" * 200, "my_model.v2", "--x--", "", "naïve café", "a-" * 60])
def test_every_base_makes_a_name_the_service_accepts(base):
    name = job_name(base, NOON)
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name)
    assert name.endswith("-2026-01-31-12-00-00-007")


@pytest.mark.parametrize(
    ("word", "known", "suggestion"),
    [("epocs", ("epochs", "rate"), "epochs"), ("TRAIN", ("trains", "train"), "train"), ("epochs", ("rate",), None)],
    ids=["misspelt", "another case", "nothing similar"],
)  # fmt: skip
def test_the_most_similar_word_is_suggested(word, known, suggestion):
    assert did_you_mean(word, known, most=0) == (f"did you mean {suggestion!r}?" if suggestion else "")
