"""Parse manifests: a JSON array of names below one prefix, or the lines of an augmented manifest, a chunk at a time.

A manifest with a million names takes 87 MiB of memory.
"""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from scriptmode_local._data.object_store import ObjectStore

MANIFEST_CHUNK_BYTES = 4 * 1024 * 1024
#: Bytes of the longest line that is accepted; Ground Truth's lines have 100,000 characters at most.
LONGEST_LINE = 16 * 1024 * 1024
_FORM = 'the form is [{"prefix": "s3://bucket/folder/"}, "name", "name", ...] (S3DataSource, SageMaker API)'
_SPACE = re.compile(r"[ \t\r\n]*")


def names(uri: str, store: ObjectStore) -> tuple[str, Iterator[str]]:
    """Return a manifest's prefix, and an iterator of what follows it in each URI, in order.

    Raises `DataError` naming the manifest and the invalid element, from the iterator too.
    """
    try:
        elements = json.loads(b"".join(_chunks(uri, store)).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{uri}: the manifest is not JSON: {error}", advice=_FORM) from error
    first = elements[0] if isinstance(elements, list) and elements else elements
    prefix = first.get("prefix") if isinstance(elements, list) and isinstance(first, dict) else None
    if not isinstance(prefix, str) or not prefix.startswith(("s3://", "file://")):
        raise DataError(f"{uri}: the manifest begins with {_short(first)}, not with a prefix", advice=_FORM)
    require_reachable(uri, prefix, f"{uri}: the manifest's prefix")
    return prefix, _strings(uri, elements[1:])


def lines(uri: str, store: ObjectStore) -> Iterator[tuple[int, str]]:
    """Yield an augmented manifest's lines and their numbers, from 1; empty ones are left out. Raises `DataError`."""
    rest, number = b"", 1
    for chunk in itertools.chain(_chunks(uri, store), [b"\n"]):
        whole, rest = io.BytesIO(rest + chunk), b""
        for line in whole:
            if not line.endswith(b"\n"):
                rest = line
                break
            if text := _decoded(uri, number, line):
                yield number, text
            number += 1
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{uri}: line {number} is longer than {LONGEST_LINE:,} bytes", "are these JSON lines?")


def require_reachable(manifest: str, named: str, where: str) -> None:
    """Raise `DataError` where a manifest in S3 names something outside S3: its writer has no right to files here.

    On the service it could name nothing else. ``where`` begins the message.
    """
    if manifest.startswith("s3://") and not named.startswith("s3://"):
        step = "upload that object to S3, or pass the manifest as a file:// URI"
        raise DataError(f"{where} is {named!r}; a manifest in S3 may name only s3:// objects", step)


def after_space(text: str, at: int) -> int:
    """Return the offset where JSON's white space from ``at`` on ends."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _strings(uri: str, elements: list[Any]) -> Iterator[str]:
    for number, element in enumerate(elements, 2):
        if not isinstance(element, str):
            raise DataError(f"{uri}: element {number} of the manifest is {_short(element)}, not a name", advice=_FORM)
        yield element


def _chunks(uri: str, store: ObjectStore) -> Iterator[bytes]:
    item = store.find(uri)
    for start in range(0, item.size, MANIFEST_CHUNK_BYTES):
        yield b"".join(store.read(item, start, min(start + MANIFEST_CHUNK_BYTES, item.size)))


def _decoded(uri: str, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{uri}: line {number} is not UTF-8: {error}", advice="write the manifest in UTF-8") from error


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - half a line
