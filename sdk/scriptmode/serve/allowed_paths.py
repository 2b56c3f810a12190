"""The directories of this machine that a request over HTTP may name by a ``file://`` URI."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scriptmode.data import file_uris
from scriptmode.serve.aws_json import validation_error
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Values for the script alone, which runs as the server's user in any case.
_OF_THE_SCRIPT = ("Environment", "Tags")


def check_file_uris(request: Mapping[str, object], allowed: Sequence[str]) -> None:
    """Raise `ApiError` for a ``file://`` URI of a request that is not in one of the directories."""
    folders = [os.path.realpath(folder) for folder in allowed]
    for uri in _file_uris({name: value for name, value in request.items() if name not in _OF_THE_SCRIPT}):
        try:
            path = os.path.realpath(file_uris.file_path(uri))
        except ValueError as error:
            raise validation_error(str(error)) from error
        if not any(os.path.commonpath((path, folder)) == folder for folder in folders):
            raise validation_error(
                f"'{uri}' is not in a directory that requests may name: use S3, or start the server with --allow and "
                "that directory."
            )


def _file_uris(value: object) -> Iterator[str]:
    """Yield the URIs in a part of a request; hyperparameters are texts in JSON, too."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _file_uris(each)
    elif isinstance(value, list):
        for each in value:
            yield from _file_uris(each)
    elif isinstance(value, str):
        for text in (value, contract.decode(value)):
            if isinstance(text, str) and file_uris.is_file(text):
                yield text
