"""Names of jobs, and which known word a misspelt one is most similar to."""

import re
from datetime import datetime, timezone

import pytest

from scriptmode.core.spec.names import job_name
from scriptmode.core.text.messages import suggest_similar

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
    [
        ("us-esat-1", ("us-west-1", "us-east-1"), "us-east-1"),
        ("from", ("fromm", "form"), "form"),
        ("abc", ("bca", "abcd"), "abcd"),
        ("v12", ("v21", "v1"), "v1"),
        ("TRAIN", ("trains", "train"), "train"),
        ("epochs", ("rate",), None),
    ],
    ids=[
        "two letters exchanged", "at the end of the word", "three letters in another order",
        "digits exchanged", "another case", "nothing similar",
    ],
)  # fmt: skip
def test_the_most_similar_word_is_suggested(word, known, suggestion):
    assert suggest_similar(word, known) == (f"did you mean {suggestion!r}?" if suggestion else "")
