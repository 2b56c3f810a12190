"""The gates' comparison of outcomes with expectations, and the programs' adaptations."""

import subprocess
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tests.foreign_suites import __main__ as command
from tests.foreign_suites import moto_suite, outcomes, sources
from tests.foreign_suites.outcomes import Rule, judge
from tests.foreign_suites.programs import KERAS_DATA, Program
from tests.foreign_suites.pytest_runs import run

FAILS = Rule("fails", "an error's text differs", ("a.py::test_x", "a.py::test_many"))
OTHER = Rule("not applicable", "it is about endpoints", ("a.py::test_deploy*",))

MISSING = "0 tests run that no rule names, where 1 are to pass: others are missing or skipped"


def suite(result):
    """Return a suite with these outcomes, or that raises this error."""
    return SimpleNamespace(VERSION="1.0", run=Mock(side_effect=[result]))


def test_tests_are_counted_by_their_rules():
    outcome = {
        "a.py::test_ok": None,
        "a.py::test_x": "differs",
        "a.py::test_many[1]": "differs",
        "a.py::test_deploy": "no endpoints",
        "a.py::test_deploys": None,
        "a.py::test_gpu": f"{outcomes.SKIPPED}no GPU",
    }
    assert judge(outcome, (FAILS, OTHER), 1) == outcomes.Verdict(1, 2, 3, ())


@pytest.mark.parametrize(
    ("outcome", "offence"),
    [
        ({"a.py::test_x": None}, "a.py::test_x: passes, and is expected to fail: an error's text differs"),
        ({"a.py::test_x": "differs", "a.py::test_ok": "boom"}, "a.py::test_ok: boom"),
        ({"a.py::test_y": None}, "a.py::test_x: no test that runs has this name"),
        ({"a.py::test_x": f"{outcomes.SKIPPED}no GPU"}, "a.py::test_x: no test that runs has this name"),
        ({"a.py::test_ok": f"{outcomes.SKIPPED}no GPU"}, MISSING),
        ({"a.py::test_x": "differs"}, MISSING),
        ({}, MISSING),
    ],
    ids=[
        "an expected failure passes",
        "another test fails",
        "a rule has no test",
        "an expected failure skips itself",
        "a test skips itself",
        "a test is missing",
        "nothing ran",
    ],
)
def test_what_is_unexpected_is_an_offence(outcome, offence):
    assert offence in judge(outcome, (Rule(FAILS.kind, FAILS.reason, FAILS.tests[:1]),), 1).offences


def test_a_test_that_fails_is_one_offence():
    assert judge({"a.py::test_ok": "boom"}, (), 1).offences == ("a.py::test_ok: boom",)


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


@pytest.mark.slow
def test_a_package_that_the_index_does_not_provide_is_a_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert command.main(["moto"]) == 1
    assert f"moto: RuntimeError: moto {moto_suite.VERSION} cannot be fetched: " in capsys.readouterr().out


@pytest.mark.slow
def test_failures_of_a_suite_are_read_by_name(tmp_path):
    (tmp_path / "test_some.py").write_text(
        "import pytest\n\n"
        "def test_ok(): pass\n\n"
        "@pytest.mark.parametrize('n', [1])\ndef test_bad(n): assert n == 2, 'not two'\n\n"
        "@pytest.mark.skip(reason='no GPU')\ndef test_gpu(): pass\n"
    )
    found = run(tmp_path, "no suite", "test_some.py", plugin="timeit")
    assert found.pop("test_some.py::test_bad[1]").startswith("AssertionError: not two")
    assert found == {"test_some.py::test_ok": None, "test_some.py::test_gpu": "skipped: no GPU"}


@pytest.mark.slow
def test_a_suite_that_does_not_start_has_failed(tmp_path):
    (failure,) = run(tmp_path, "no suite", "test_none.py", plugin="no_such_plugin").values()
    assert "no_such_plugin" in failure


def test_a_program_that_changed_is_not_run_without_its_adaptation(tmp_path):
    with pytest.raises(ValueError, match="a.py: nothing to adapt"):
        Program({"a.py": "print(1)"}, "1", (KERAS_DATA,)).write(tmp_path / "job")


def test_a_missing_checkout_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(sources.CHECKOUTS, str(tmp_path))
    with pytest.raises(sources.NotFetchedError, match="has no directory docs"):
        sources.repository("tensorflow/docs", "master")


def test_the_version_is_that_of_the_checkout_which_is_used(tmp_path, monkeypatch):
    sdk = SimpleNamespace(VERSION="2.0", REPOSITORY="aws/sdk")
    monkeypatch.delenv(sources.CHECKOUTS, raising=False)
    assert sources.version(sdk) == "2.0"
    monkeypatch.setenv(sources.CHECKOUTS, str(tmp_path))
    assert sources.version(SimpleNamespace(VERSION="5.0")) == "5.0"
    (tmp_path / "sdk").mkdir()
    assert sources.version(sdk) == "unknown revision"
    git = ("git", "-C", str(tmp_path / "sdk"), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "-m", "first"), ("tag", "v1.9")):
        subprocess.run((*git, *arguments), check=True)
    assert sources.version(sdk) == "v1.9"
