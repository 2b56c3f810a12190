"""Violations of the service's model as problems of a request, in the words of an estimator's arguments. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from scriptmode._core.request.fields import FIELDS, PLAIN_ARGUMENTS
from scriptmode._core.request.service_model import SECRETS, UNITS, MapKey, Violation, field_of, limits, raise_problems
from scriptmode._core.text.messages import Problem, did_you_mean
from scriptmode_runtime import contract

#: Fields that are set by an argument of ``fit``, or by one that is made of several fields.
_OTHER_ARGUMENTS = {
    "TrainingJobName": "job_name",
    "HyperParameters": "hyperparameters",
    "InputDataConfig": "inputs",
    "OutputDataConfig.CompressionType": "disable_output_compression",
    "ProfilerRuleConfigurations": "rules",
    "Tags": "tags",
    "ExperimentConfig": "experiment_config",
}
_SHOWN = 80
_SEE = "see CreateTrainingJob in Amazon SageMaker's API reference"


def raise_violations(why: str, violations: Iterable[Violation]) -> None:
    """Raise `RequestError` with a problem for each value that violates the model, if there are any."""
    by_path: dict[object, Violation] = {}
    for violation in violations:
        by_path.setdefault(violation.path, violation)
    raise_problems(why, list(map(_problem, by_path.values())))


def argument_of(path: str) -> str:
    """Return the argument that sets the field at a path without indices, or a part of it; "" where there is none."""
    for row in FIELDS:
        if path == row.path or path.startswith(f"{row.path}."):
            return row.argument or _OTHER_ARGUMENTS.get(row.path, "")
    return ""


def _problem(violation: Violation) -> Problem:
    path, text = violation.path, _text(violation.path)
    argument = argument_of(field_of(path))
    owner = _text(path[:-1]) or "the request"
    if violation.constraint == "unknown":
        if newer := PLAIN_ARGUMENTS.get(field_of(path)):
            what = f"{newer} ({text}) is newer than the installed botocore"
            return Problem(what, "upgrade it: pip install --upgrade boto3", newer)
        advice = did_you_mean(str(path[-1]), violation.shape["members"]) or _SEE
        return Problem(f"{owner} has no field {path[-1]!r}", advice, argument_of(field_of(path[:-1])))
    if violation.constraint == "required":
        known = {row.path: row.argument for row in FIELDS}.get(text)
        return Problem(f"{owner} lacks {path[-1]!r}", f"give {known}" if known else "", argument)
    what, advice = _value_problem(violation)
    # A field of which the caller knows the argument alone.
    named = argument in PLAIN_ARGUMENTS.values()
    field = f"{argument} ({text})" if named else f"{argument}: {text}" if argument else text or "the request"
    return Problem(f"{field} {what}", advice, argument)


def _value_problem(violation: Violation) -> tuple[str, str]:
    """Return what a value is, and what it must be."""
    path, constraint, value, shape = violation
    kind = shape["type"]
    if constraint == "type":
        given = "" if value is None else f", {_with_article(type(value).__name__)}"
        return f"is {_show(path, value)}{given}", f"it must be {_with_article(kind)}"
    shown = f"is {_show(path, value)}"
    if constraint == "enum":
        return shown, did_you_mean(value, shape["enum"]) or _SEE
    if constraint == "text":
        return f"{shown}, which {contract.text_problem(value)}", "give text in UTF-8 without NUL characters"
    limit = limits(shape)[constraint]
    if constraint == "pattern":
        return shown, f"it must match {limit}"
    unit = UNITS.get(kind, "")
    bound = "least" if constraint == "min" else "most"
    return f"has {len(value):,}{unit}" if unit else shown, f"the {bound} is {limit:,}{unit}"


def _show(path: tuple[str | int | MapKey, ...], value: object) -> str:
    if SECRETS.intersection(path[:-1]) and not isinstance(path[-1], MapKey):
        return f"a hidden value of length {len(str(value)):,}"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _text(path: tuple[str | int | MapKey, ...]) -> str:
    if path and isinstance(path[-1], MapKey):
        return f"a key of {_text(path[:-1])}"
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
