"""The gates' comparison of outcomes with expectations."""

import pytest
from tests.foreign_suites import __main__ as command, outcomes
from tests.foreign_suites.outcomes import judge

FAILING = {"test_x": "an error's text differs"}
MISSING = "1 tests run, where 2 are to pass: others are missing"


@pytest.mark.parametrize(
    ("outcome", "passes", "offence"),
    [
        ({"test_x": None}, 0, "test_x: passes, and is expected to fail: an error's text differs"),
        ({"test_x": "differs", "test_ok": "boom"}, 1, "test_ok: boom"),
        ({"test_ok": None}, 1, "test_x: no test has this name"),
        ({"test_x": "differs", "test_ok": None}, 2, MISSING),
    ],
    ids=["an expected failure passes", "another test fails", "an expected failure does not run", "a test is missing"],
)
def test_what_is_unexpected_is_an_offence(outcome, passes, offence):
    assert judge(outcome, FAILING, passes).offences == (offence,)
    assert judge({"test_ok": None, "test_x": "differs"}, FAILING, 1) == outcomes.Verdict(1, 1, ())


def test_every_suite_has_its_number_of_tests_that_pass():
    assert all(outcomes.passes(name) > 0 for name in command.SUITES)
