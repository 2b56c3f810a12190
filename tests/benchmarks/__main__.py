"""``python -m tests.benchmarks [NAME ...]``: measure side by side and print medians and ratios."""

from __future__ import annotations

import os
import sys
import tempfile

from tests.benchmarks import (
    client,
    cluster,
    command_line,
    containers,
    failure,
    first_step,
    footprint,
    job_list,
    launcher,
    live_view,
    plan,
    reader,
    relay,
    streams,
    submit,
    training,
)

MODULES = (
    client, submit, launcher, relay, failure, cluster, containers, training, reader, streams, first_step, footprint,
    job_list, live_view, command_line, plan,
)  # fmt: skip
BENCHMARKS = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main() -> int:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names:
        module = BENCHMARKS[name]
        print(f"{name}: {(module.__doc__ or '').strip()}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SCRIPTMODE_DATA_DIR"] = f"{folder}/data"
            for figure in module.run(folder):
                print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
