"""The record of an engine about one job, ``engine.json``: what a scheduler knows the job by, such as its job number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._store import shapes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scriptmode_local._store.job_store import JobFolder


def write_engine_record(folder: JobFolder, record: Mapping[str, str]) -> None:
    """Record what the engine needs to find the job outside its folder; raise ``OSError``."""
    replace_file(_path(folder), regular_files.render_json(dict(record)))


def read_engine_record(folder: JobFolder) -> dict[str, str]:
    """Return what `write_engine_record` recorded; an empty dict without it. Raises `UnreadableJobError`."""
    path = _path(folder)
    try:
        content = regular_files.read_json(path)
        shapes.validate_shape(content, {"*": str}, "")
    except FileNotFoundError:
        return {}
    except (OSError, TypeError, ValueError) as error:
        raise folder.unreadable(path, error) from error
    return dict(content)


def has_engine_record(folder: JobFolder) -> bool:
    """Return whether `write_engine_record` recorded something, which may be damaged."""
    return _path(folder).exists()


def _path(folder: JobFolder) -> Path:
    return folder.path / "engine.json"
