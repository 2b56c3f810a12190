"""Places as they are typed: ``s3://``, or a folder of this machine, which becomes ``file://`` where jobs run here."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode import SpecError
from scriptmode.messages import did_you_mean_path

_FILE = "file://"


def resolve_location(what: str, text: str, *, is_local: bool, base: Path | None = None) -> str:
    """Give a place of another machine as it is, and one of this machine as a whole path, from ``base`` or from here.

    ``what`` names the option or key. Raises `SpecError` for a place that the platform does not have.
    """
    if text.startswith("gs://"):
        raise SpecError(
            f"{what} {text!r} is in Google Cloud Storage, which no platform here reads; name a place in s3://"
            + (", or a folder of this machine" if is_local else "")
        )
    if "://" in text and not text.startswith(_FILE):
        return text
    if not is_local:
        raise SpecError(f"{what} {text!r} is not in S3, where Amazon SageMaker looks; write s3://bucket/prefix")
    if not text.removeprefix(_FILE):
        raise SpecError(f"{what} {text!r} names no folder; write s3://bucket/prefix, or a folder of this machine")
    try:
        return str(((base or Path()) / Path(text.removeprefix(_FILE)).expanduser()).absolute())
    except RuntimeError as error:
        raise SpecError(f"{what} {text!r} begins in a home folder that nobody knows; write the whole path") from error


def location_uri(what: str, text: str, *, is_local: bool, base: Path | None = None) -> str:
    """Give `place` as a URI."""
    found = resolve_location(what, text, is_local=is_local, base=base)
    return found if "://" in found else f"{_FILE}{found}"


def existing_location_uri(what: str, text: str, *, is_local: bool) -> str:
    """Give `uri`; raise `SpecError`, too, for a place of this machine that is not there."""
    found = location_uri(what, text, is_local=is_local)
    path = found.removeprefix(_FILE)
    if path != found and not os.path.lexists(path):
        step = did_you_mean_path(Path(path)) or "; correct the path or create it"
        raise SpecError(f"{what} {text!r}: there is no file or folder {path!r}{step}")
    return found
