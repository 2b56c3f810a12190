"""The gates' comparison of outcomes with expectations, and the programs' adaptations."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tests.foreign_suites import __main__ as command
from tests.foreign_suites import outcomes, sources
from tests.foreign_suites.outcomes import judge
from tests.foreign_suites.programs import KERAS_DATA, Program

FAILING = {"test_x": "an error's text differs"}
MISSING = "1 tests run, where 2 are to pass: others are missing"


def suite(result):
    """Return a suite with these outcomes, or that raises this error."""
    return SimpleNamespace(VERSION="1.0", run=Mock(side_effect=[result]))


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


def test_a_suite_that_raises_has_failed_and_the_others_run(monkeypatch, capsys):
    monkeypatch.setattr(outcomes, "passes", lambda _name: 1)
    suites = {"first": suite(ValueError("no tests here")), "second": suite({"a.py": None})}
    monkeypatch.setattr(command, "SUITES", suites)
    assert command.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "first: ValueError: no tests here" in lines
    assert lines[-1] == "1 passed, 1 failed"


def test_a_suite_that_github_does_not_provide_fails_only_if_no_other_runs(monkeypatch, capsys):
    monkeypatch.setattr(outcomes, "passes", lambda _name: 1)
    reason = sources.NotFetchedError("no route to host")
    monkeypatch.setattr(command, "SUITES", {"first": suite(reason), "second": suite({"a.py": None})})
    assert command.main([]) == 0
    assert "not fetched: no route to host" in capsys.readouterr().out
    monkeypatch.setattr(command, "SUITES", {"first": suite(reason)})
    assert command.main([]) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 1 failed\n")


def test_a_program_that_changed_is_not_run_without_its_adaptation(tmp_path):
    with pytest.raises(ValueError, match="a.py: nothing to adapt"):
        Program({"a.py": "print(1)"}, "1", (KERAS_DATA,)).write(tmp_path / "job")


def test_a_missing_checkout_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(sources.CHECKOUTS, str(tmp_path))
    with pytest.raises(sources.NotFetchedError, match="has no directory docs"):
        sources.repository("tensorflow/docs", "master")
