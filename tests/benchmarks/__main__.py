"""``python -m tests.benchmarks [--list] [--smallest] [NAME ...]``: measure side by side, print medians and ratios."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile

from tests.benchmarks import figures

#: In the order in which they run.
NAMES = (
    "client", "submit", "launcher", "relay", "failure", "host_agent", "cluster", "containers", "training", "reader", "streams",
    "mounts", "first_step", "footprint", "job_list", "live_view", "command_line", "plan", "slurm", "serve",
)  # fmt: skip


def main() -> int:
    options = parse(sys.argv[1:])
    if options.smallest:
        # Read when the modules are imported, and by the processes that they start.
        os.environ[figures.SMALLEST_VARIABLE] = "1"
    benchmarks = {name: importlib.import_module(f"tests.benchmarks.{name}") for name in NAMES}
    for name in options.names or NAMES:
        module = benchmarks[name]
        print(f"{name}: {(module.__doc__ or '').strip()}", flush=True)
        if options.list:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SCRIPTMODE_DATA_DIR"] = f"{folder}/data"
            for figure in module.run(folder):
                print(figure.line(), flush=True)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; exit with 2 for a benchmark that does not exist."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Print the README's figures.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run (default: all): {', '.join(NAMES)}"
    )
    parser.add_argument("--list", action="store_true", help="print what each benchmark measures and run none")
    parser.add_argument(
        "--smallest", action="store_true", help="run once at the smallest size, to test that it works; no valid figures"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
