"""The table at the end of a run: cases, time and CPU by directory, the slowest tests, repeats, and what was skipped."""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

SLOWEST = 10
#: A run of fewer tests has no table.
FEW = 100
_CPU = "cpu seconds"


class RunReport:
    """A plugin. Each process that runs tests measures their CPU time; the one that reports collects and prints.

    The file of ``--timings`` gets a JSON line for each test when it ends: its name, outcome, seconds, CPU seconds, repeats.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        file = config.option.timings
        self._file = Path(file) if file and "PYTEST_XDIST_WORKER" not in os.environ else None
        if self._file:
            if self._file.suffix == ".py" or not self._file.parent.is_dir():
                raise pytest.UsageError(f"--timings is {file!r}; give a file to write, in a directory that exists")
            self._file.write_text("")
        self._cpu_before = 0.0
        self._started = time.monotonic()
        self._tests: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"outcome": "passed", "seconds": 0.0, "cpu": 0.0, "repeats": 0}
        )
        self._skipped: Counter[str] = Counter()

    def pytest_runtest_logstart(self) -> None:
        """Begin to measure a test."""
        self._cpu_before = _cpu()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Add to the last report of a test what it took in this process and in children that it waited for."""
        if call.when == "teardown":
            item.user_properties.append((_CPU, _cpu() - self._cpu_before))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect one phase of a test."""
        test = self._tests[report.nodeid]
        test["seconds"] += report.duration
        if report.when == "teardown":
            test["cpu"] += dict(report.user_properties).get(_CPU, 0.0)
        if report.outcome == "rerun":
            test["repeats"] += 1
        elif not report.passed:
            test["outcome"] = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._skipped[reason.removeprefix("Skipped: ")] += 1
        if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
            # A run that is cut off prints no summary.
            said = f"\nfailed in {report.when}: {report.nodeid}: {report.longreprtext[-600:]}"
            self._config.get_terminal_writer().line(said, flush=True)
        if self._file and report.when == "teardown":
            with self._file.open("a") as file:
                file.write(json.dumps({"test": report.nodeid, **test}) + "\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tables."""
        if os.environ.get("PYTEST_XDIST_WORKER"):
            return
        if len(self._tests) < FEW:
            return
        terminalreporter.section("tests by directory")
        for line in self._by_directory():
            terminalreporter.write_line(line)
        terminalreporter.section(f"the {SLOWEST} slowest tests")
        for name, test in sorted(self._tests.items(), key=lambda each: -each[1]["seconds"])[:SLOWEST]:
            terminalreporter.write_line(f"{test['seconds']:8.1f} s  {test['cpu']:7.1f} s CPU  {name}")
        repeated = {name: test["repeats"] for name, test in self._tests.items() if test["repeats"]}
        terminalreporter.section(f"repeated: {len(repeated)}")
        for name, repeats in repeated.items():
            terminalreporter.write_line(f"{repeats} x  {name}")
        terminalreporter.section(f"skipped: {sum(self._skipped.values())}")
        for reason, number in self._skipped.most_common():
            terminalreporter.write_line(f"{number} x  {reason}")

    def _by_directory(self) -> list[str]:
        """Return a line for each directory of tests, and the sums with the CPU time of the whole machine."""
        directories: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name, test in self._tests.items():
            directories["/".join(name.partition("::")[0].split("/")[:2])].append(test)
        lines = [f"{'directory':24}{'cases':>8}{'failed':>8}{'repeats':>9}{'seconds':>10}{'CPU':>9}"]
        everything = list(self._tests.values())
        for directory, tests in [*sorted(directories.items()), ("all", everything)]:
            failed = sum(test["outcome"] == "failed" for test in tests)
            seconds, cpu, repeats = (sum(test[name] for test in tests) for name in ("seconds", "cpu", "repeats"))
            lines.append(f"{directory:24}{len(tests):8,}{failed:8}{repeats:9}{seconds:10,.0f}{cpu:9,.0f}")
        lines.append(f"wall {time.monotonic() - self._started:,.0f} s on {os.cpu_count()} cores")
        return lines


def _cpu() -> float:
    """Return the CPU seconds of this process and of the children that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
