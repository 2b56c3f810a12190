"""``python -m scriptmode.v2 PROGRAM [ARGUMENT...]``: run a program of the SageMaker SDK v2 with scriptmode."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from scriptmode.v2 import _alias as alias

_USAGE = """\
Usage: python -m scriptmode.v2 PROGRAM [ARGUMENT...]
       python -m scriptmode.v2 -m MODULE [ARGUMENT...]

Run a program of the SageMaker SDK v2 unchanged: its imports of sagemaker give scriptmode's own objects.
"""
_WRONG_USAGE = 2


def _print_exception(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an exception as ``python PROGRAM`` does: without the frames that ran the program."""
    while trace and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def main(words: list[str]) -> None:
    """Run the program or the module of a command line, as ``python`` would."""
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(_USAGE)
        return
    is_module = words[:1] == ["-m"]
    words = words[is_module:]
    if not words or words[0].startswith("-"):
        sys.stderr.write(f"{_USAGE}\npython -m scriptmode.v2: name a PROGRAM, or -m and a MODULE\n")
        sys.exit(_WRONG_USAGE)
    if words[0].endswith(".ipynb"):
        advice = "write %load_ext scriptmode.v2 in its first cell"
        sys.stderr.write(f"python -m scriptmode.v2: {words[0]} is a notebook; {advice}\n")
        sys.exit(_WRONG_USAGE)
    alias.activate()
    sys.argv, sys.excepthook = words, _print_exception
    if is_module:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    program = Path(words[0])
    if not program.exists():
        sys.stderr.write(f"python -m scriptmode.v2: there is no file {words[0]!r}\n")
        sys.exit(_WRONG_USAGE)
    if program.is_file():
        # Before the current directory, in which `python -m` looks first.
        sys.path.insert(0, str(program.absolute().parent))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
