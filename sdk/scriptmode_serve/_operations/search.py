"""Amazon SageMaker's Search for training jobs: by any property of a description, by tags, and by metrics. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from scriptmode._core.request.service_model import shapes
from scriptmode_serve._operations import paging
from scriptmode_serve._operations.aws_json import validation_error
from scriptmode_serve._operations.request_errors import validate

_KIND, _NAME, _METRICS, _POSITION = "TrainingJob", "TrainingJobName", "Metrics", "Position"
_FINAL = "FinalMetricDataList"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
#: Operators of numbers and times, and of texts, which have no order.
_OF_NUMBERS: Mapping[str, Callable[[float, float], bool]] = {
    "Equals": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
}
_OF_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "Equals": operator.eq,
    "Contains": operator.contains,
    "In": lambda text, texts: text in texts.split(","),
}


def search(
    jobs: Iterable[Mapping[str, Any]],
    tags_of: Callable[[str], Mapping[str, str]],
    metrics_of: Callable[[Mapping[str, Any]], list[dict[str, object]]],
    arguments: Mapping[str, Any],
) -> dict[str, object]:
    """Return the answer of Search in the descriptions of all training jobs; raise `ApiError`.

    ``tags_of`` returns the tags of the job of a name, ``metrics_of`` the metrics of a described job from its logs.
    """
    validate("SearchRequest", arguments)
    if arguments["Resource"] != _KIND or {"VisibilityConditions", "CrossAccountFilterOption"} & arguments.keys():
        alone = "without VisibilityConditions and CrossAccountFilterOption"
        raise validation_error(f"scriptmode serve searches in the Resource {_KIND} alone, {alone}.")
    members, condition = shapes(_KIND)[_KIND]["members"], arguments.get("SearchExpression", {})
    order = arguments.get("SortBy", "LastModifiedTime")
    parts = [{"Name": order, "Operator": "Exists"}, *_filters(condition)]
    for part in parts:
        if part["Name"].partition(".")[0] not in {*members, _METRICS}:
            raise validation_error(f"Unknown property name: {part['Name']}")
        if "Value" not in part and not part.get("Operator", "").endswith("Exists"):
            raise validation_error(f"The filter of {part['Name']} needs a Value.")
    is_by_metric = any(part["Name"].partition(".")[0] in (_METRICS, _FINAL) for part in parts)
    rows = []
    for job in jobs:
        tags = tags_of(job[_NAME])
        metrics = metrics_of(job) if is_by_metric else []
        values = {str(metric["MetricName"]): metric["Value"] for metric in metrics}
        found = {**job, _FINAL: metrics, "Tags": tags, _METRICS: values}
        if _is_met(condition, found):
            record = {name: value for name, value in found.items() if name in members}
            record["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
            # What lacks the property is first, and numbers are before texts.
            first = [*_texts(found, order)][:1]
            position = [[1, text] if (number := _number(text)) is None else [0, number] for text in first]
            rows.append({_NAME: job[_NAME], _POSITION: position, _KIND: record})
    shown, more = paging.page(rows, {"SortOrder": "Descending", **arguments}, key=_POSITION, name=_NAME)
    total = {"Value": len(rows), "Relation": "EqualTo"}
    results = [{_KIND: {**row[_KIND], _FINAL: row[_KIND][_FINAL] or metrics_of(row[_KIND])}} for row in shown]
    return {"Results": results, "TotalHits": total, **more}


def _filters(expression: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the filters of an expression and of all its parts, and one of the name of each list of filters."""
    yield from expression.get("Filters", ())
    for nested in expression.get("NestedFilters", ()):
        yield from ({"Name": nested["NestedPropertyName"], "Operator": "Exists"}, *nested["Filters"])
    for part in expression.get("SubExpressions", ()):
        yield from _filters(part)


def _is_met(expression: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    met = [_meets(part, job) for part in expression.get("Filters", ())]
    met += [_is_met(part, job) for part in expression.get("SubExpressions", ())]
    for nested in expression.get("NestedFilters", ()):
        # All of them by one element of the list.
        name = nested["NestedPropertyName"]
        elements = value if isinstance(value := job.get(name), list) else ()
        met.append(any(_is_met({"Filters": nested["Filters"]}, {name: element}) for element in elements))
    return any(met) if expression.get("Operator") == "Or" else all(met)


def _texts(value: object, name: str) -> Iterator[str]:
    """Yield the values of a property such as ``HyperParameters.a.b`` as filters have them, of a list those in it."""
    if isinstance(value, list):
        for element in value:
            yield from _texts(element, name)
    elif not name:
        yield str(value).lower() if isinstance(value, bool) else str(value)
    elif isinstance(value, dict):
        for key in value:
            if f"{name}.".startswith(f"{key}."):
                yield from _texts(value[key], name[len(key) + 1 :])


def _meets(part: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    values, wanted = [*_texts(job, part["Name"])], str(part.get("Value", ""))
    kind: str = part.get("Operator", "Equals")
    if kind.endswith("Exists"):
        return bool(values) == (kind == "Exists")
    is_text = part["Name"].partition(".")[0] in (_NAME, "Tags")
    is_met: bool = any(_compare(kind.removeprefix("Not"), value, wanted, is_text=is_text) for value in values)
    return is_met == (kind != "NotEquals")


def _compare(kind: str, value: str, wanted: str, *, is_text: bool) -> bool:
    number, other = (None, None) if is_text else (_number(value), _number(wanted))
    if number is not None and other is not None and kind in _OF_NUMBERS:
        return _OF_NUMBERS[kind](number, other)
    return kind in _OF_TEXTS and _OF_TEXTS[kind](value, wanted)


def _number(text: str) -> float | None:
    """Return a number, or the seconds since the epoch of a time, which is in UTC by default; None for another text."""
    if _NUMBER.fullmatch(text):
        return float(text)
    with suppress(ValueError):
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    return None
