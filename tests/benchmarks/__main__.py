"""``python -m tests.benchmarks [--list] [--smallest] [NAME ...]``: measure side by side, print medians and ratios."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time

from tests.benchmarks import figures

#: In the order in which they run.
NAMES = (
    "client", "wire", "launcher", "training", "reader", "streams", "peers", "first_step", "footprint",
    "command_line", "entry_point", "serve", "scale",
)  # fmt: skip


def main() -> int:
    options = parse(sys.argv[1:])
    if options.smallest:
        # Read when the modules are imported, and by the processes that they start.
        os.environ[figures.SMALLEST_VARIABLE] = "1"
    began = time.monotonic()
    for name in options.names or NAMES:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        print(f"{name}: {str(module.__doc__).strip().splitlines()[0]}", flush=True)
        if not options.list:
            measure(module.run)
    if not options.list:
        print(f"{time.monotonic() - began:.0f} s")
    return 0


def measure(run: figures.Benchmark) -> None:
    """Print the figures of a benchmark and its seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SCRIPTMODE_DATA_DIR"] = f"{folder}/data"
        for figure in run(folder):
            print(figure.line(), flush=True)
    print(f"  in {time.monotonic() - began:.0f} s", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; exit with 2 for a benchmark that does not exist."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Print this project's figures.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run (default: all): {', '.join(NAMES)}"
    )
    parser.add_argument("--list", action="store_true", help="print what each benchmark measures and run none")
    parser.add_argument(
        "--smallest", action="store_true", help="run once at the smallest size, to test that it works; no valid figures"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}; use one of {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
