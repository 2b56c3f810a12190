"""What jobs are listed as. Ended ones are kept in one file, so that a list of thousands does not read every state."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError, JobNotFoundError
from scriptmode.platforms.local import recovery
from scriptmode.platforms.local.durable import replace_file
from scriptmode.platforms.local.state import STATUS_OF, Brief

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.state import JobState
    from scriptmode.platforms.local.store import JobStore

_TIME = {int, float}
#: Types of a row: the file's version, two numbers, then a brief without its name.
_COLUMNS: tuple[set[type], ...] = ({int}, {int}, {str}, _TIME, _TIME, {str}, {*_TIME, type(None)})
_STATUS = 5


def briefs(store: JobStore) -> list[Brief]:
    """Give every job of a store, in no order; what was read of jobs that ended is kept for the next time.

    One whose state is broken is passed over; the logger ``scriptmode`` says so, once in a process.
    """
    known = _read(store.ended_jobs)
    kept: dict[str, list[Any]] = {}
    found: list[Brief] = []
    is_new = False
    for name, inode, written in store.state_versions():
        row = known.get(name)
        # A state that ended changes no more; another job of that name has another file.
        if row is not None and row[0] == inode and row[1] == written:
            found.append(Brief._make((name, *row[2:])))
            kept[name] = row
            continue
        state = _settled(store, name)
        if state is not None:
            found.append(state.brief)
            if state.ended:
                kept[name] = [inode, written, *state.brief[1:]]
                is_new = True
    if is_new or len(kept) != len(known):
        # Nothing but time is lost where it cannot be written.
        with suppress(OSError):
            replace_file(store.ended_jobs, json.dumps(kept, separators=(",", ":")).encode(), durable=False)
    return found


def _settled(store: JobStore, name: str) -> JobState | None:
    try:
        return recovery.settled(store.folder(name))
    except JobNotFoundError:  # removed meanwhile
        return None
    except DataError as error:
        _warn(str(error))
        return None


@lru_cache(maxsize=1000)
def _warn(problem: str) -> None:
    import logging

    logging.getLogger("scriptmode").warning("passed over: %s", problem)


def _read(path: Path) -> dict[str, list[Any]]:
    """Read what was kept; what another version of this library kept, or a broken file, is nothing."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    rows = list(content.values())
    if not all(isinstance(row, list) and len(row) == len(_COLUMNS) for row in rows):
        return {}
    # By columns: of thousands of jobs that takes a third of the time.
    is_sound = all({*map(type, column)} <= types for column, types in zip(zip(*rows), _COLUMNS))
    return content if is_sound and {row[_STATUS] for row in rows} <= STATUS_OF.keys() else {}
