"""``python -m tests.benchmarks [--list | --smallest | --write] [NAME ...]``: measure side by side, print medians."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tests.benchmarks import figures

#: In the order in which they run.
NAMES = (
    "client", "wire", "launcher", "training", "reader", "streams", "peers", "first_step", "footprint",
    "command_line", "serve", "scale",
)  # fmt: skip

#: Each has tables, below lines `<!-- bench NAME -->`.
PAGES = ("sdk/docs/reference/figures.md", "sdk/docs/reference/scale.md")


def main() -> int:
    """Return 1 if a figure misses its bound."""
    options = parse(sys.argv[1:])
    if options.smallest:
        # Read when the modules are imported, and by the processes that they start.
        os.environ[figures.SMALLEST_VARIABLE] = "1"
    began = time.monotonic()
    are_kept = True
    for name in options.names or NAMES:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        print(f"{name}: {str(module.__doc__).strip().splitlines()[0]}", flush=True)
        if not options.list:
            measured = measure(module.run)
            are_kept = are_kept and all(figure.is_kept for figure in measured)
            for page in map(Path, PAGES if options.write else ()):
                page.write_text(with_table(page.read_text(), name, measured))
    if not options.list:
        print(f"{time.monotonic() - began:.0f} s")
    return 0 if are_kept else 1


def measure(run: figures.Benchmark) -> list[figures.Figure]:
    """Print the figures of a benchmark and its seconds."""
    began = time.monotonic()
    folder = tempfile.mkdtemp()
    try:
        with mock.patch.dict(os.environ, SCRIPTMODE_DATA_DIR=f"{folder}/data"):
            measured = run(folder)
    finally:
        # Agents of jobs that have ended may still remove their own.
        shutil.rmtree(folder, ignore_errors=True)
    for figure in measured:
        print(figure.line(), flush=True)
    print(f"  in {time.monotonic() - began:.0f} s", flush=True)
    return measured


def with_table(page: str, name: str, measured: list[figures.Figure]) -> str:
    """Return a page whose table of a benchmark is that of its figures."""
    table = "| figure | measured | bound |\n|---|---|---|\n" + "".join(figure.row() for figure in measured)
    return re.sub(rf"(<!-- bench {name} -->\n\n)(?:\|.*\n)*", lambda place: place[1] + table, page)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; exit with 2 for a benchmark that does not exist."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Print this project's figures.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run (default: all): {', '.join(NAMES)}"
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--list", action="store_true", help="print what each benchmark measures and run none")
    one.add_argument(
        "--smallest", action="store_true", help="run once at the smallest size, to test that it works; no valid figures"
    )
    one.add_argument("--write", action="store_true", help=f"write the figures into {' and '.join(PAGES)}")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}; use one of {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
