"""Fields of the request that no argument of an estimator has: ``additional_request_fields``. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from scriptmode._core.request.fields import FIELDS, without_empty
from scriptmode._core.request.parse import parse_request
from scriptmode._core.request.render import render_request
from scriptmode._core.spec.job_request import ABSENT, JobRequest
from scriptmode.errors import SpecError, invalid


def with_additional_fields(request: JobRequest, additional: Mapping[str, Any]) -> JobRequest:
    """Return a request with fields that no argument says; those that are ``None`` are taken out of it."""
    # A caller that changes its values must not change the request.
    return parse_request(copy.deepcopy(_merge(render_request(request), additional)))


def check_taken_out(argument: str, additional: object) -> None:
    """Raise `SpecError` for an argument whose field ``additional_request_fields`` takes out of the request."""
    for row in FIELDS:
        value: Any = additional if row.argument == argument else {}
        for key in row.path.split("."):
            value = value.get(key, ABSENT) if isinstance(value, dict) else value
        if value is None:
            what = f"sets {row.path}, which additional_request_fields takes out of the request"
            raise invalid(row.argument, what, "set additional_request_fields first, without it")


def _merge(fields: Mapping[str, Any], additional: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Merge in the additional fields; raise `SpecError` for one that an argument says already."""
    merged = dict(fields)
    for key, value in additional.items():
        if value is None:
            merged.pop(key, None)
        elif key not in merged:
            merged[key] = without_empty(value) if isinstance(value, dict) else value
        elif isinstance(value, dict) and isinstance(merged[key], dict):
            merged[key] = _merge(merged[key], value, f"{path}{key}.")
        elif merged[key] != value:
            # Values of these maps may be secrets.
            said = "" if path in ("Environment.", "HyperParameters.") else f", {value!r} and {merged[key]!r}"
            what = f"additional_request_fields and the estimator's arguments both say {path}{key}{said}"
            raise SpecError(what, "say it by the argument alone", argument="additional_request_fields")
    return merged
