"""How many bytes something has, as people say it. Pure."""

from __future__ import annotations


def in_words(count: int) -> str:
    """Give a number of bytes in the largest decimal unit that it has one of: ``1.5 MB``, ``12 bytes``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
