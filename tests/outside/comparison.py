"""Compare output with what a document shows: exactly, apart from what differs from run to run."""

from __future__ import annotations

import re

#: Generated names, dates, durations and process numbers, which differ from run to run, and what stands for them.
_GENERATED = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[a-z][a-z-]*-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{3}\b"), "NAME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "DATE"),
    (re.compile(r"\b\d[\d,.]* ?m?s\b"), "DURATION"),
    (re.compile(r"\bprocess \d+\b"), "process NUMBER"),
    (re.compile(r"\s+"), " "),
)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def agrees(expected: str, output: str, tolerance: float = 0.0) -> bool:
    """Return whether the output contains the expected lines in order.

    ``...`` matches any text in a line, and as a line any lines. An empty expectation matches everything. With a tolerance,
    a share, each number may differ from the expected one by that much of it.
    """
    parts = [normalized(line) for line in expected.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if part == "..." else _pattern(part, tolerance) + r"\n" for part in parts)
    found = re.search(rf"^{pattern}", "".join(f"{normalized(line)}\n" for line in output.splitlines()), re.MULTILINE)
    if found is None or not tolerance:
        return found is not None
    return all(
        abs(_value(number) - _value(wanted)) <= tolerance * abs(_value(wanted))
        for wanted, number in zip(_NUMBER.findall("\n".join(parts)), found.groups())
    )


def normalized(line: str) -> str:
    """Return a line with single spaces, and with words for generated names, dates, durations and process numbers."""
    for pattern, word in _GENERATED:
        line = pattern.sub(word, line)
    return line.strip()


def _pattern(line: str, tolerance: float) -> str:
    """Return a regular expression of a line; with a tolerance it has a group for each number."""
    words = _NUMBER.split(line) if tolerance else [line]
    return f"({_NUMBER.pattern})".join(re.escape(word).replace(r"\.\.\.", ".*?") for word in words)


def _value(number: str) -> float:
    return float(number.replace(",", ""))
