"""``python -m tests.foreign_suites [SUITE ...]``: run suites of other projects against this one, and print a table.

The exit status is 1 if a test fails that ``expected.toml`` does not name, if one passes that it does name, if fewer pass
than it says, or if no suite ran.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tests.foreign_suites import clients_suite, horovod_suite, outcomes, s3_suite, tutorials_suite, v2_programs_suite
from tests.foreign_suites.sources import NotFetchedError, version

if TYPE_CHECKING:
    from types import ModuleType

SUITES: dict[str, ModuleType | clients_suite.Client] = {
    **clients_suite.CLIENTS, "s3-tests": s3_suite, "horovod": horovod_suite, "tutorials": tutorials_suite,
    "v2-programs": v2_programs_suite,
}  # fmt: skip
ROW = "{:16}{:22}{:>8}{:>18}{:>12}{:>9}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.foreign_suites", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"suites to run (default: {', '.join(SUITES)})")
    chosen = parser.parse_args(arguments).suites or list(SUITES)
    unknown = sorted(set(chosen) - set(SUITES))
    if unknown:
        parser.error(f"unknown suites: {', '.join(unknown)}; use some of {', '.join(SUITES)}")
    rows = [ROW.format("suite", "version", "passed", "expected to fail", "unexpected", "seconds")]
    offences, passed, ran = [], 0, False
    for name in chosen:
        row, verdict = _run(name)
        rows.append(row)
        if verdict:
            ran = True
            passed += verdict.passed
            offences += [f"{name}: {offence}" for offence in verdict.offences]
    if not ran:
        offences.append("no suite ran")
    print("\n".join([*offences, *rows, f"{passed} passed, {len(offences)} failed"]))
    return 1 if offences else 0


def _run(name: str) -> tuple[str, outcomes.Verdict | None]:
    """Run a suite; return its row, and its verdict unless GitHub does not provide it."""
    suite, started = SUITES[name], time.monotonic()
    print(f"{name}: running", file=sys.stderr, flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="scriptmode-foreign-") as folder:
            verdict = outcomes.judge(suite.run(Path(folder)), outcomes.failing(name), outcomes.passes(name))
    except NotFetchedError as error:
        return f"{name:16}{suite.VERSION:22}not fetched: {error}", None
    except Exception as error:  # the other suites run, and the table is printed
        traceback.print_exc()
        verdict = outcomes.Verdict(0, 0, (f"{type(error).__name__}: {error}",))
    numbers = (verdict.passed, verdict.expected, len(verdict.offences))
    return ROW.format(name, version(suite), *numbers, f"{time.monotonic() - started:.0f}"), verdict


if __name__ == "__main__":
    sys.exit(main())
