"""Running mutants, and what came of each."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.house import sources
from tests.mutants import trials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mutants.checkout import Checkout
    from tests.mutants.lines import LineMap
    from tests.mutants.sites import Mutant

KILLED, SURVIVED, NOT_EXECUTED, EQUIVALENT = "killed", "survived", "not executed", "equivalent"
#: For each map, the fast tests' first: the largest number of tests, and their seconds all together.
BUDGETS = ((100, 15.0), (6, 40.0))
#: Added to what the tests took without a fault, and its factor. A machine that does other work too needs several times as long.
SLACK, FACTOR = 60.0, 5.0


class Results:
    """Records by mutant, in a file that is written after each."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.records: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}

    def add(self, mutant: Mutant, record: dict[str, Any]) -> None:
        """Record what came of a mutant."""
        self.records[str(mutant)] = {"package": mutant.package, **record}
        self._file.write_text(json.dumps(self.records, indent=1))


def run(checkout: Checkout, sample: list[Mutant], maps: list[LineMap], file: Path, after: Path | None) -> Results:
    """Run the mutants without a record, and return the results."""
    results = Results(file)
    old = Results(after).records if after else {}
    remaining = {str(mutant): mutant for mutant in sample if str(mutant) not in results.records}
    for name, mutant in list(remaining.items()):
        before = old.get(name, {})
        if before.get("status") == KILLED and before["digest"] == _digest(mutant, before["test"]):
            results.add(remaining.pop(name), before)
    jobs = [_job(checkout, mutant, maps, old.get(name, {})) for name, mutant in remaining.items()]
    for record in _trials(checkout, jobs):
        mutant = remaining[record.pop("mutant")]
        record.update({"digest": _digest(mutant, record["test"])} if "test" in record else {})
        results.add(mutant, record)
        print(f"{len(results.records)}/{len(sample)} {mutant}: {record['status']} {record.get('test', '')}", flush=True)
    return results


def _job(checkout: Checkout, mutant: Mutant, maps: list[LineMap], before: dict[str, Any]) -> dict[str, Any]:
    original = (sources.ROOT / mutant.path).read_bytes()
    texts = {"original": original.decode(), "content": mutant.apply(original).decode()}
    rounds = [(tests, SLACK + FACTOR * seconds) for tests, seconds in _rounds(mutant, maps, before)]
    return {"mutant": str(mutant), "path": str(checkout.path / mutant.path), "rounds": rounds, **texts}


def _trials(checkout: Checkout, jobs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Run the jobs, and yield the records as they come."""
    file = checkout.folder / "jobs"
    file.write_text(json.dumps(jobs))
    files = sorted({test.partition("::")[0] for job in jobs for tests, _ in job["rounds"] for test in tests})
    reading, writing = os.pipe()
    variables = {trials.INPUT: str(file), trials.OUTPUT: str(writing)}
    with (
        checkout.pytest("-p", "tests.mutants.trials", *files, pass_fds=(writing,), **variables),
        os.fdopen(reading) as lines,
    ):
        os.close(writing)
        yield from map(json.loads, lines)
    print(checkout.output())


def _digest(mutant: Mutant, test: str) -> str:
    files = (sources.ROOT / mutant.path, sources.ROOT / test.partition("::")[0])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.exists())).hexdigest()


def _rounds(mutant: Mutant, maps: list[LineMap], before: dict[str, Any]) -> Iterator[tuple[list[str], float]]:
    """Yield tests to run together, with their seconds: the one that killed the mutant before, then those of each map."""
    seconds = {test: value for each in maps for test, value in each.seconds.items()}
    if before.get("test") in seconds:
        yield [before["test"]], seconds[before["test"]]
    for each, (most, limit) in zip(maps, BUDGETS):
        tests, total = [], 0.0
        for test in each.tests(mutant)[:most]:
            total += seconds[test]
            if tests and total > limit:
                break
            tests.append(test)
        if tests:
            yield tests, total


def table(results: Results) -> str:
    """Return a table by package. Mutants judged equivalent do not count."""
    lines = Path(__file__).with_name("equivalents.txt").read_text(encoding="utf-8").splitlines()
    equivalents = {line for line in lines if not line.startswith(" ")}  # the reason is indented
    packages: dict[str, Counter[str]] = {}
    for mutant, record in results.records.items():
        status = EQUIVALENT if mutant in equivalents and record["status"] != KILLED else record["status"]
        packages.setdefault(record["package"], Counter())[status] += 1
    rows = [f"{'package':58} {'mutants':>8} {KILLED:>8} {SURVIVED:>8} {NOT_EXECUTED:>12} {EQUIVALENT:>10} {'share':>6}"]
    for name, row in [*sorted(packages.items()), ("all", sum(packages.values(), Counter()))]:
        count = row.total() - row[EQUIVALENT]
        share = f"{100 * row[KILLED] / count:.0f} %" if count else "-"
        rows.append(
            f"{name:58} {row.total():8} {row[KILLED]:8} {row[SURVIVED]:8} {row[NOT_EXECUTED]:12} {row[EQUIVALENT]:10} {share:>6}"
        )
    return "\n".join(rows)
