"""Arguments of the programs beside this file: what cannot be is refused in one line, before anything starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode import ScriptmodeError

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNELS = ("train", "eval")


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is no whole number of at least 1"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    """Read such numbers with commas between."""
    try:
        return tuple(count(word) for word in text.split(","))
    except argparse.ArgumentTypeError as error:
        message = f"{text!r} is not whole numbers of at least 1 with commas between; write for example 1,2"
        raise argparse.ArgumentTypeError(message) from error


def share(text: str) -> float:
    """Read a part of one."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        message = f"{text!r} is no number from 0 to 1; write for example 0.7"
        raise argparse.ArgumentTypeError(message)
    return value


def channels(text: str) -> Path:
    """Read a folder that has a folder for each channel."""
    folder = Path(text).resolve()
    missing = [name for name in CHANNELS if not (folder / name).is_dir()]
    if missing:
        message = f"{text!r} has no folder {' and no folder '.join(map(repr, missing))}; name one with both channels"
        raise argparse.ArgumentTypeError(message)
    return folder


def ended(main: Callable[[], int]) -> int:
    """Run a program; give its exit code, and 1 for an error of scriptmode's, which is said without a traceback."""
    try:
        return main()
    except ScriptmodeError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
