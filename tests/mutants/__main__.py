"""``python -m tests.mutants``: change the product's code by one small fault at a time, and see which test fails.

::

    python -m tests.mutants sample                                # print the mutants
    python -m tests.mutants map FILE [PYTEST ARGUMENT ...]        # run tests; record which lines each executes
    python -m tests.mutants run --map FILE --results FILE         # run the mutants that FILE does not have yet
    python -m tests.mutants table FILE                            # print the results by package

With ``run --after OLD`` a mutant that a test killed before counts as killed if neither the test's file nor the changed file
differs; else that test runs first. ``equivalents.txt`` has the mutants that no test can kill, with the reason of each.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from tests.house import sources
from tests.mutants import results, sites
from tests.mutants.checkout import Checkout
from tests.mutants.lines import LineMap, measure

SIZE = 265
SEED = "1"


def _existing(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}; `python -m tests.mutants map FILE` writes a map")
    return Path(text)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Measure what the tests notice.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("sample", help="print the mutants")
    verb = verbs.add_parser("map", help="record which test executes which lines")
    verb.add_argument("file", type=Path)
    verb.add_argument("arguments", nargs=argparse.REMAINDER)
    verb = verbs.add_parser("run", help="run the tests that execute each mutant")
    verb.add_argument(
        "--map",
        dest="maps",
        type=_existing,
        metavar="FILE",
        action="append",
        required=True,
        help="the fast tests' map first",
    )
    verb.add_argument(
        "--results", type=Path, metavar="FILE", required=True, help="is written; what it has is not run again"
    )
    verb.add_argument(
        "--after", type=_existing, metavar="FILE", help="results of the same sample before the tests changed"
    )
    verb.add_argument("--only", default="", metavar="TEXT", help="the mutants whose line in the sample has this text")
    verb = verbs.add_parser("table", help="print results")
    verb.add_argument("results", type=_existing, metavar="FILE")
    options = parser.parse_args()
    if options.verb == "table":
        print(results.table(results.Results(options.results)))
        return 0
    sample = [] if options.verb == "map" else sites.sample(sources.product(), SIZE, SEED)
    if options.verb == "sample":
        print(*sample, sep="\n")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the copy is removed
    checkout = Checkout()
    try:
        if options.verb == "map":
            measure(checkout, options.file, options.arguments)
        else:
            maps = [LineMap(file) for file in options.maps]
            sample = [mutant for mutant in sample if options.only in str(mutant)]
            if not sample:
                parser.error(f"no mutant has the text {options.only!r}; `sample` prints them")
            print(results.table(results.run(checkout, sample, maps, options.results, options.after)))
    finally:
        checkout.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
