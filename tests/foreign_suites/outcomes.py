"""Outcomes of the tests of a foreign suite, compared with the expected ones of ``expected.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True)
class Verdict:
    """The numbers of a suite's row, and what is unexpected."""

    passed: int
    expected: int
    offences: tuple[str, ...]


def failing(suite: str) -> dict[str, str]:
    """Read the tests of a suite that fail, with the reason of each."""
    return {test: rule["reason"] for rule in read_toml(FILE).get(suite, ()) for test in rule["tests"]}


def passes(suite: str) -> int:
    """Read how many tests of a suite pass."""
    return read_toml(FILE)["passes"][suite]


def read_toml(file: Path) -> dict[str, Any]:
    """Read a file of TOML."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10 and older
        import tomli as tomllib
    return tomllib.loads(file.read_text(encoding="utf-8"))


def judge(outcomes: dict[str, str | None], failing: dict[str, str], passes: int) -> Verdict:
    """Compare the tests' failures, None of a test that passed, with those that fail and the number that pass.

    A test that passes and should fail is an offence, and so are a failing one that does not run, and too few that pass.
    """
    passed = [test for test, failure in outcomes.items() if failure is None and test not in failing]
    offences = [f"{test}: no test has this name" for test in failing if test not in outcomes]
    offences += [
        f"{test}: passes, and is expected to fail: {reason}"
        for test, reason in failing.items()
        if outcomes.get(test, "") is None
    ]
    failed = {test: failure for test, failure in outcomes.items() if failure is not None and test not in failing}
    offences += [f"{test}: {failure}" for test, failure in failed.items()]
    if len(passed) + len(failed) < passes:
        offences.append(f"{len(passed) + len(failed)} tests run, where {passes} are to pass: others are missing")
    expected = sum(outcomes.get(test) is not None for test in failing)
    return Verdict(len(passed), expected, tuple(offences))
