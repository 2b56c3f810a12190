"""Manifests, read in parts: a JSON array of names below one prefix, and the lines of an augmented manifest."""

from __future__ import annotations

import codecs
import io
import json
import re
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.data.object_store import ObjectStore

PART = 4 * 1024 * 1024
#: An element or a line that is longer is no manifest's; Ground Truth's lines have 100,000 characters at most.
LONGEST = 16 * 1024 * 1024
_FORM = '; the form is [{"prefix": "s3://bucket/folder/"}, "name", "name", ...] (S3DataSource, SageMaker API)'
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


def names(uri: str, store: ObjectStore) -> tuple[str, Iterator[str]]:
    """Give a manifest's prefix and what follows it: the rests of the URIs, in order.

    Raises `DataError` naming the manifest and the element that is not as it must be, on the way too.
    """
    elements = _elements(uri, store)
    first = next(elements, None)
    prefix = first.get("prefix") if isinstance(first, dict) else None
    if not isinstance(prefix, str) or not prefix.startswith(("s3://", "file://")):
        begins = "is empty" if first is None else f"begins with {_short(first)}, not with a prefix"
        raise DataError(f"{uri}: the manifest {begins}{_FORM}")
    require_reachable(uri, prefix, f"{uri}: the manifest's prefix")
    return prefix, _strings(uri, elements)


def lines(uri: str, store: ObjectStore) -> Iterator[tuple[int, str]]:
    """Yield an augmented manifest's lines and their numbers, from 1; empty ones are left out. Raises `DataError`."""
    rest = b""
    number = 1
    for part in _parts(uri, store):
        whole, rest = io.BytesIO(rest + part), b""
        for line in whole:
            if not line.endswith(b"\n"):
                rest = line
                break
            if text := _decoded(uri, number, line):
                yield number, text
            number += 1
        if len(rest) > LONGEST:
            raise DataError(f"{uri}: line {number} is longer than {LONGEST:,} bytes; are these JSON lines?")
    if text := _decoded(uri, number, rest):
        yield number, text


def require_reachable(manifest: str, named: str, place: str) -> None:
    """Raise `DataError` where a manifest in S3 names what is not: others write it, and the files here are not theirs.

    On the service it could name nothing else. ``place`` begins the message.
    """
    if manifest.startswith("s3://") and not named.startswith("s3://"):
        raise DataError(
            f"{place} is {named!r}; a manifest that lies in S3 may name only s3:// objects: "
            "store what it names in S3, or give the manifest as a file:// URI"
        )


def after_space(text: str, at: int) -> int:
    """Give where JSON's white space from ``at`` on ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _strings(uri: str, elements: Iterator[Any]) -> Iterator[str]:
    for number, element in enumerate(elements, 2):
        if not isinstance(element, str):
            raise DataError(f"{uri}: element {number} of the manifest is {_short(element)}, not a name{_FORM}")
        yield element


def _elements(uri: str, store: ObjectStore) -> Iterator[Any]:
    """Yield the elements of a JSON array."""
    text = _Text(uri, store)
    text.take("[")
    if text.sign() != "]":
        yield text.element()
        while text.sign() == ",":
            text.take(",")
            yield text.element()
    text.take("]")
    if text.sign():
        raise text.broken("something follows the array")


class _Text:
    """JSON text that comes in parts; only what is not yet an element is in memory."""

    def __init__(self, uri: str, store: ObjectStore) -> None:
        self._uri = uri
        self._parts = _parts(uri, store)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._is_whole = False

    def sign(self) -> str:
        """Give the next character that is no white space; "" at the end."""
        while True:
            self._at = after_space(self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, sign: str) -> None:
        """Go on behind that character; raise `DataError` where there is another one."""
        if self.sign() != sign:
            raise self.broken(f"{sign!r} was expected")
        self._at += 1

    def element(self) -> Any:
        """Give the next value."""
        self.sign()
        while True:
            try:
                element, self._at = _DECODER.raw_decode(self._text, self._at)
                return element  # noqa: TRY300 - the loop goes on only where it failed
            except (ValueError, RecursionError) as error:  # noqa: PERF203
                # It may only be cut: more of it comes with the next part.
                is_cut = isinstance(error, ValueError) and len(self._text) - self._at <= LONGEST
                if not (is_cut and self._more()):
                    raise self.broken(str(error)) from error

    def broken(self, why: str) -> DataError:
        """Give the error that says where the text is not as it must be."""
        near = self._text[self._at : self._at + 40]
        return DataError(f"{self._uri}: the manifest is not JSON at {near!r}: {why}{_FORM}")

    def _more(self) -> bool:
        if self._is_whole:
            return False
        part = next(self._parts, None)
        self._is_whole = part is None
        try:
            text = self._decoder.decode(part or b"", final=self._is_whole)
        except UnicodeDecodeError as error:
            raise self.broken(str(error)) from error
        self._text, self._at = self._text[self._at :] + text, 0
        return True


def _parts(uri: str, store: ObjectStore) -> Iterator[bytes]:
    item = store.find(uri)
    for start in range(0, item.size, PART):
        yield bytes(store.read(item, start, min(start + PART, item.size)))


def _decoded(uri: str, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{uri}: line {number} is not UTF-8: {error}; write the manifest in UTF-8") from error


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a line's part
