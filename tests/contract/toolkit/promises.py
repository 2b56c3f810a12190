"""What a record is made of, and how a difference changes the toolkit's into what we promise."""

from __future__ import annotations

import json
from typing import Any, Callable

#: ``exit``, ``failure``, ``success``, ``given`` and ``script`` of a run; ``cluster`` or ``mpirun`` of an answer.
Record = dict[str, Any]
#: In a promise: other members are not compared, for the toolkit has none. And any text.
AND_MORE, SOME_TEXT = "...", "(some text)"


def env(record: Record) -> dict[str, str]:
    """Give the script's variables, to be changed; none where no script was started."""
    variables: dict[str, str] = (record.get("script") or {}).get("env", {})
    return variables


def given(record: Record) -> dict[str, str]:
    """Give what the launcher itself was started with."""
    variables: dict[str, str] = record.get("given", {})
    return variables


def started(record: Record) -> bool:
    return bool(record.get("script"))


def run(record: Record, *argv: str) -> None:
    """Promise that the script runs well, where the toolkit refuses."""
    record.update(exit=0, failure=False, script={AND_MORE: "", **({"argv": [*argv]} if argv else {})})


def refuse(record: Record) -> None:
    """Promise that no script is started."""
    record.update(exit=1, failure=True, script=None)


def edit_training_env(record: Record, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the object in ``SM_TRAINING_ENV``."""
    variables = env(record)
    if "SM_TRAINING_ENV" in variables:
        document = json.loads(variables["SM_TRAINING_ENV"])
        edit(document)
        variables["SM_TRAINING_ENV"] = spelled(document)


def spelled(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def differing(expected: Any, actual: Any, path: str = "") -> dict[str, str]:
    """Give every member in which a record differs from what is promised, by its path, with both values."""
    if expected == SOME_TEXT and isinstance(actual, str):
        return {}
    if not (isinstance(expected, dict) and isinstance(actual, dict)):
        return {} if expected == actual else {path: f"promised {expected!r}, seen {actual!r}"}
    keys = expected.keys() - {AND_MORE} if AND_MORE in expected else {*expected, *actual}
    nothing = "(nothing)"
    parts = [(f"{path}.{key}".strip("."), expected.get(key, nothing), actual.get(key, nothing)) for key in sorted(keys)]
    return {where: text for key, one, other in parts for where, text in differing(one, other, key).items()}
