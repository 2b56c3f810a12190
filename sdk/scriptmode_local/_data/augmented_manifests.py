"""Parse one line of an augmented manifest into the pieces that are sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Callable

from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import DataError
from scriptmode_local._data.manifests import after_space, require_reachable
from scriptmode_local._data.object_store import Literal, ObjectStore, Piece

#: Suffix of attributes that hold an object's URI ("Augmented Manifest Files for Training Jobs", SageMaker's guide).
REFERENCE = "-ref"
_DECODER = json.JSONDecoder()


def line_pieces(
    manifest: str, number: int, text: str, names: Sequence[str], store_of: Callable[[str], ObjectStore]
) -> list[Piece]:
    """Return the pieces of a line: objects for references, else the attributes' JSON text as it is written.

    Raises `DataError` and its subclasses, naming the manifest, the line's number and the attribute.
    """
    where = f"{manifest}: line {number}"
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {error}", advice="each line must be one JSON object") from error
    if not isinstance(values, dict):
        raise DataError(f"{where} is {text[:60]!r}", advice="each line must be one JSON object")
    for name in names:
        if name not in values:
            what = f"{where} has no attribute {name!r}; {did_you_mean(name, values) or 'it is empty'}"
            raise DataError(what, advice="add it to the line or leave it out of AttributeNames")
    texts = {} if all(name.endswith(REFERENCE) for name in names) else _texts(text)
    return [
        _object(manifest, f"{where}, attribute {name!r}", values[name], store_of)
        if name.endswith(REFERENCE)
        else Literal(texts[name].encode(), manifest)
        for name in names
    ]


def _object(manifest: str, where: str, value: object, store_of: Callable[[str], ObjectStore]) -> Piece:
    if not isinstance(value, str) or not value.startswith(("s3://", "file://")):
        advice = f"an attribute named *{REFERENCE} must be an object's s3:// URI"
        raise DataError(f"{where} is {value!r}", advice=advice)
    require_reachable(manifest, value, where)
    try:
        return store_of(value).find(value)
    except DataError as error:
        raise type(error)(f"{where}: {error.message}", argument=error.argument, advice=error.advice) from error


def _texts(line: str) -> dict[str, str]:
    """Return the text of each value of a JSON object; ``line`` must be valid."""
    texts = {}
    at = after_space(line, after_space(line, 0) + 1)
    while line[at] != "}":
        name, at = _DECODER.raw_decode(line, after_space(line, at + (line[at] == ",")))
        start = after_space(line, after_space(line, at) + 1)
        _, end = _DECODER.raw_decode(line, start)
        texts[name] = line[start:end]
        at = after_space(line, end)
    return texts
