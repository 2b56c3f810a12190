"""Parse one line of an augmented manifest into the pieces that are sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.core.text.messages import did_you_mean
from scriptmode.data.manifests import after_space, require_reachable
from scriptmode.data.object_store import Literal
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scriptmode.data.object_store import ObjectStore, Piece

#: Suffix of attributes that hold an object's URI ("Augmented Manifest Files for Training Jobs", SageMaker's guide).
REFERENCE = "-ref"
_DECODER = json.JSONDecoder()


class AugmentedManifestLine:
    """One line of an augmented manifest; errors name the manifest, the line's number and the attribute."""

    def __init__(self, manifest: str, number: int, text: str) -> None:
        self._manifest = manifest
        self._where = f"{manifest}: line {number}"
        self._text = text

    def pieces(self, names: Sequence[str], store_of: Callable[[str], ObjectStore]) -> list[Piece]:
        """Return the pieces of the line: objects for references, else the attributes' JSON text as it is written.

        Raises `DataError` and its subclasses.
        """
        values = self._values()
        for name in names:
            if name not in values:
                raise DataError(
                    f"{self._where} has no attribute {name!r}; {did_you_mean(name, values) or 'it is empty'}",
                    advice="add it to the line or leave it out of AttributeNames",
                )
        texts = {} if all(name.endswith(REFERENCE) for name in names) else _texts(self._text)
        return [
            self._object(name, values[name], store_of)
            if name.endswith(REFERENCE)
            else Literal(texts[name].encode(), self._manifest)
            for name in names
        ]

    def _values(self) -> dict[str, Any]:
        try:
            values = json.loads(self._text)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self._where} is not JSON: {error}", advice="each line must be one JSON object"
            ) from error
        if not isinstance(values, dict):
            raise DataError(f"{self._where} is {self._text[:60]!r}", advice="each line must be one JSON object")
        return values

    def _object(self, name: str, value: object, store_of: Callable[[str], ObjectStore]) -> Piece:
        where = f"{self._where}, attribute {name!r}"
        if not isinstance(value, str) or not value.startswith(("s3://", "file://")):
            raise DataError(
                f"{where} is {value!r}", advice=f"an attribute named *{REFERENCE} must be an object's s3:// URI"
            )
        require_reachable(self._manifest, value, where)
        try:
            return store_of(value).find(value)
        except DataError as error:
            raise type(error)(f"{where}: {error.message}", argument=error.argument, advice=error.advice) from error


def _texts(line: str) -> dict[str, str]:
    """Return the text of each value of a JSON object; ``line`` must be valid."""
    found = {}
    at = after_space(line, after_space(line, 0) + 1)
    while line[at] != "}":
        name, at = _DECODER.raw_decode(line, after_space(line, at + (line[at] == ",")))
        start = after_space(line, after_space(line, at) + 1)
        _, end = _DECODER.raw_decode(line, start)
        found[name] = line[start:end]
        at = after_space(line, end)
    return found


def has_references(names: Iterable[str]) -> bool:
    """Return whether any of the attributes holds an object's URI."""
    return any(name.endswith(REFERENCE) for name in names)
