"""Which test executes which lines of the product, and how long each test takes."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import coverage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mutants.checkout import Checkout
    from tests.mutants.sites import Mutant


def measure(checkout: Checkout, file: Path, arguments: list[str]) -> None:
    """Run tests with coverage, also in the processes that they start, and write the map."""
    timings = checkout.data / "timings"
    options = ("-p", "tests.mutants.contexts", "--timings", str(timings), *arguments)
    with checkout.pytest(*options, COVERAGE_PROCESS_START=str(checkout.folder / "coverage")) as process:
        code = process.wait()
    print(checkout.output())
    if code not in {0, 1}:
        raise SystemExit(f"pytest ended with {code}")
    file.write_text(json.dumps({"tests": _tests(timings), "lines": _lines(checkout.data, f"{checkout.path}/")}))


def _lines(folder: Path, root: str) -> dict[str, dict[int, list[str]]]:
    """Return the tests by line by file. A process that was killed leaves incomplete data, which do not count."""
    combined = coverage.Coverage(data_file=str(folder / "data"), config_file=False)
    combined.combine([str(folder)])
    data = combined.get_data()
    return {
        path.removeprefix(root): {
            line: sorted({_test(name) for name in names})
            for line, names in sorted(data.contexts_by_lineno(path).items())
        }
        for path in sorted(data.measured_files())
    }


def _test(context: str) -> str:
    """Return the test of a context: of a process that a test started, ``FILE::TEST[PARAMETERS] (call)``."""
    return (context.rpartition("|")[2] or context.partition("|")[0]).partition("[")[0].partition(" (")[0]


def _tests(timings: Path) -> dict[str, float]:
    """Return the seconds of each test all of whose cases passed."""
    seconds: dict[str, float] = defaultdict(float)
    failed = set()
    for line in timings.read_text().splitlines():
        test: dict[str, Any] = json.loads(line)
        name = test["test"].partition("[")[0]
        seconds[name] += test["seconds"]
        if test["outcome"] not in {"passed", "skipped"}:
            failed.add(name)
    return {name: round(value, 3) for name, value in seconds.items() if name not in failed}


class LineMap:
    """A map that ``measure`` wrote."""

    def __init__(self, file: Path) -> None:
        content = json.loads(file.read_text())
        self.seconds: dict[str, float] = content["tests"]
        self._lines: dict[str, dict[str, list[str]]] = content["lines"]

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant, the cheapest first.

        A line that runs while its module is imported counts for every test that executes anything of the file.
        """
        lines = self._lines.get(mutant.path, {})
        found = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(str(line), ())}
        if found == {""}:
            found = {test for tests in lines.values() for test in tests}
        return sorted(found & self.seconds.keys(), key=lambda test: (self.seconds[test], test))
