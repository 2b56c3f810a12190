"""What a request over HTTP may name: directories of this machine, and keys that the server's S3 keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_runtime import contract
from scriptmode_serve._operations.aws_json import validation_error

#: Variables and hyperparameters that the host takes as the path of a source also without a scheme.
_PATHS = (contract.SUBMIT_DIRECTORY, contract.SUBMIT_DIRECTORY.upper())


def is_kept(key: str) -> bool:
    """Return whether SeaweedFS makes no other key of one; a slash at its end is that of a directory."""
    return "\\" not in key and not any(part in ("", ".", "..") for part in key.removesuffix("/").split("/") if key)


def check_paths(request: Mapping[str, object], allowed: Sequence[str] = (), *, has_all_keys: bool = True) -> None:
    """Raise `ApiError` for a path of this machine that is not allowed, and for a key if S3 has not all: jobs ask it."""
    folders = [os.path.realpath(folder) for folder in allowed]
    for text in _paths({name: value for name, value in request.items() if name != "Tags"}):
        if text.startswith("s3://"):
            if not has_all_keys and not is_kept(text[len("s3://") :].partition("/")[2].rstrip("/")):
                raise validation_error(f"'{text}' has a key that the S3 of this server would change; give another URI.")
            continue
        try:
            path = file_uris.file_path(text) if file_uris.is_file(text) else text
            real = os.path.realpath(path)
        except (DataError, ValueError) as error:
            raise validation_error(str(error)) from error
        if not Path(path).is_absolute() or not any(os.path.commonpath((real, folder)) == folder for folder in folders):
            raise validation_error(
                f"'{text}' is not in a directory that requests may name: use S3, or start the server with --allow and "
                "that directory."
            )


def _paths(value: object, *, is_path: bool = False) -> Iterator[str]:
    """Yield the URIs in a part of a request, of S3 its job's own, and paths; hyperparameters are texts in JSON, too."""
    if isinstance(value, dict):
        # A tuning job has the values of a hyperparameter beside its name.
        is_range = value.get("Name") in _PATHS
        for key, member in value.items():
            if key in ("S3Uri", "S3OutputPath") and str(member).startswith("s3://"):
                yield str(member)
            read = member
            # Tags, and other variables, are for the script alone, which runs as the server's user in any case.
            if key == "Environment" and isinstance(member, dict):
                read = {name: text for name, text in member.items() if name in _PATHS}
            yield from _paths(read, is_path=key in _PATHS or (is_range and key == "Values"))
    elif isinstance(value, list):
        for member in value:
            yield from _paths(member, is_path=is_path)
    elif isinstance(value, str):
        yield from _paths_in_text(value, is_path=is_path)


def _paths_in_text(value: str, *, is_path: bool) -> Iterator[str]:
    decoded = contract.decode(value)
    for text in (decoded,) if is_path else (value, decoded):
        if isinstance(text, str) and text:
            is_inside = os.path.normpath(text).startswith(f"{contract.DEFAULT_BASE_DIR}/")
            if file_uris.is_file(text) or (is_path and not text.startswith("s3://") and not is_inside):
                yield text
