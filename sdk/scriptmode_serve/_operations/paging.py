"""Filters, order and pages of lists, as the List operations of Amazon SageMaker have them. Pure.

A token holds the last row of a page. Rows that are added or removed meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from scriptmode_serve._operations.aws_json import to_seconds, validation_error
from scriptmode_serve._operations.request_errors import validate

Row = Mapping[str, Any]
#: The rows of a page if the call does not say (MaxResults, ListTrainingJobs, API reference).
_PAGE = 10
#: The same of ListTags.
_TAGS = 50
SORT_FIELDS = {"Name": "TrainingJobName", "Status": "TrainingJobStatus", "CreationTime": "CreationTime"}
_TIMES = ("CreationTime", "LastModifiedTime")


def list_training_jobs(jobs: Sequence[Row], arguments: Row, render: Callable[[Row], Row] = dict) -> dict[str, object]:
    """Return the answer of ListTrainingJobs; raise `ApiError`.

    ``jobs`` have the fields for filters and order; ``render`` returns the summary of one.
    """
    validate("ListTrainingJobsRequest", arguments)
    if {"WarmPoolStatusEquals", "TrainingPlanArnEquals"} & arguments.keys():
        jobs = []
    key = SORT_FIELDS[arguments.get("SortBy", "CreationTime")]
    shown, more = page(select(jobs, arguments, "TrainingJob"), arguments, key=key, name="TrainingJobName")
    return {"TrainingJobSummaries": [*map(render, shown)], **more}


def list_tags(tags: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the answer of ListTags for the tags of a resource; raise `ApiError`."""
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    shown, more = page(rows, {"MaxResults": _TAGS, **arguments}, key="Key", name="Key")
    return {"Tags": shown, **more}


def select(rows: Sequence[Row], arguments: Row, kind: str) -> Sequence[Row]:
    """Return the rows that meet the filters. ``kind`` is the beginning of the names of their fields."""
    if "NameContains" in arguments:
        text = arguments["NameContains"].lower()
        rows = [row for row in rows if text in row[f"{kind}Name"].lower()]
    if "StatusEquals" in arguments:
        rows = [row for row in rows if row[f"{kind}Status"] == arguments["StatusEquals"]]
    for field in _TIMES:
        if f"{field}After" in arguments:
            rows = [row for row in rows if to_seconds(row[field]) > arguments[f"{field}After"]]
        if f"{field}Before" in arguments:
            rows = [row for row in rows if to_seconds(row[field]) < arguments[f"{field}Before"]]
    return rows


def page(rows: Sequence[Row], arguments: Row, *, key: str, name: str) -> tuple[list[Row], dict[str, str]]:
    """Return one page of the rows, and the token of the next one if there is one.

    Args:
        rows: The rows, in any order.
        arguments: Those of the call: ``SortOrder``, ``MaxResults`` and ``NextToken``.
        key: The field by which the rows are ordered.
        name: The field that is unique, which orders rows of equal keys.
    """
    descending = arguments.get("SortOrder") == "Descending"
    ordered = sorted(rows, key=lambda row: _position(row, key, name), reverse=descending)
    if "NextToken" in arguments:
        is_after = operator.lt if descending else operator.gt
        try:
            last_key, last_name = json.loads(base64.urlsafe_b64decode(arguments["NextToken"]))
            ordered = [row for row in ordered if is_after(_position(row, key, name), (last_key, last_name))]
        except (ValueError, TypeError) as error:
            raise validation_error("The pagination token is invalid.") from error
    size = arguments.get("MaxResults", _PAGE)
    shown = ordered[:size]
    if len(ordered) <= size:
        return shown, {}
    token = json.dumps(_position(shown[-1], key, name)).encode()
    return shown, {"NextToken": base64.urlsafe_b64encode(token).decode()}


def _position(row: Row, key: str, name: str) -> tuple[Any, str]:
    value = row[key]
    return (to_seconds(value) if isinstance(value, datetime) else value), str(row[name])
