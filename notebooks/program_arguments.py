"""Parsers for the arguments of the programs in this directory, which report invalid values before anything starts."""

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
    """Parse an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is not a whole number of at least 1"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    """Parse integers of at least 1, separated by commas."""
    try:
        return tuple(count(word) for word in text.split(","))
    except argparse.ArgumentTypeError as error:
        message = f"{text!r} is not a list of whole numbers of at least 1, separated by commas; write for example 1,2"
        raise argparse.ArgumentTypeError(message) from error


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        message = f"{text!r} is not a number from 0 to 1; write for example 0.7"
        raise argparse.ArgumentTypeError(message)
    return value


def channels(text: str) -> Path:
    """Parse the path of a directory with a subdirectory for each channel."""
    folder = Path(text).resolve()
    missing = [name for name in CHANNELS if not (folder / name).is_dir()]
    if missing:
        message = (
            f"{text!r} has no directory {' and no directory '.join(map(repr, missing))}; name one with both channels"
        )
        raise argparse.ArgumentTypeError(message)
    return folder


def run(main: Callable[[], int]) -> int:
    """Run a program and return its exit code; print an error of scriptmode without a traceback and return 1."""
    try:
        return main()
    except ScriptmodeError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
