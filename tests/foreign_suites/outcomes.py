"""Outcomes of the tests of a foreign suite, compared with the expected ones of ``expected.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

#: Begins the failure of a test that the suite itself skips; it counts as not applicable.
SKIPPED = "skipped: "
FILE = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True)
class Rule:
    """Tests of a suite that cannot pass, for one reason.

    Attributes:
        kind: ``fails``: the test runs, and its failure is a defect or a difference that is to be fixed.
            ``not applicable``: the test is not counted, because it is about another program.
    """

    kind: str
    reason: str
    tests: tuple[str, ...]

    def has(self, test: str) -> bool:
        """Return whether a test is one of these. A name may be a pattern; parameters of a test may be left out."""
        return any(fnmatchcase(test, pattern) or test.partition("[")[0] == pattern for pattern in self.tests)


@dataclass(frozen=True)
class Verdict:
    """The numbers of a suite's row, and what is unexpected."""

    passed: int
    expected: int
    not_applicable: int
    offences: tuple[str, ...]


def rules(suite: str) -> tuple[Rule, ...]:
    """Read the rules of a suite."""
    found = tuple(Rule(each["kind"], each["reason"], tuple(each["tests"])) for each in _content().get(suite, ()))
    assert all(rule.kind in ("fails", "not applicable") and rule.reason for rule in found), FILE
    return found


def passes(suite: str) -> int:
    """Read how many tests of a suite pass."""
    return _content()["passes"][suite]


def _content() -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10 and older
        import tomli as tomllib
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def judge(outcomes: dict[str, str | None], expected: tuple[Rule, ...], passes: int) -> Verdict:
    """Compare the tests' failures, None of a test that passed, with the rules and the number of tests that pass.

    A test that passes against its rule is an offence, and so is a name in a rule that no test has, or of which every test
    is skipped though the rule expects a failure. A missing test is an offence too, such as one that now skips itself.
    """
    run = {test: failure for test, failure in outcomes.items() if not (failure or "").startswith(SKIPPED)}
    offences = [
        f"{pattern}: no test{' that runs' * (rule.kind == 'fails')} has this name"
        for rule in expected
        for pattern in rule.tests
        if not any(Rule("", "", (pattern,)).has(test) for test in (run if rule.kind == "fails" else outcomes))
    ]
    held = sum(not any(rule.has(test) for rule in expected) for test in run)
    if held < passes:
        offences.append(
            f"{held} tests run that no rule names, where {passes} are to pass: others are missing or skipped"
        )
    counts = {"passed": 0, "fails": 0, "not applicable": 0}
    for test, failure in outcomes.items():
        rule = next((rule for rule in expected if rule.has(test)), None)
        if (rule and rule.kind == "not applicable") or test not in run:
            counts["not applicable"] += 1
        elif rule and failure is None:
            offences.append(f"{test}: passes, and is expected to fail: {rule.reason}")
        elif rule:
            counts["fails"] += 1
        elif failure is None:
            counts["passed"] += 1
        else:
            offences.append(f"{test}: {failure}")
    return Verdict(counts["passed"], counts["fails"], counts["not applicable"], tuple(offences))
