"""Variables of SageMaker Pipelines, whose values are only known while a pipeline runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scriptmode.errors import SpecError

#: What to do instead of pipelines of the SageMaker SDK; the guide says the same.
INSTEAD_OF_PIPELINES = (
    "build pipelines with the SageMaker SDK's own estimators, or give estimator.stored_request() to a step of your own"
)
#: Levels of dicts and lists in arguments, such as ``distribution={"mpi": {"processes_per_host": 2}}``.
_DEEPEST = 4


def refuse_pipeline_variables(arguments: Mapping[str, object], argument: str | None = None) -> None:
    """Raise `SpecError` for an argument that is, or contains, a Parameter, a Join or a Properties of a pipeline.

    ``argument`` is the one that all of them belong to, by default each is one itself.
    """
    for name, value in arguments.items():
        for where, variable in _variables(name, value, _DEEPEST):
            what = f"{where} is a pipeline variable, {type(variable).__name__}, and pipelines are not supported"
            raise SpecError(what, f"give a value; {INSTEAD_OF_PIPELINES}", argument=argument or name)


def _variables(where: str, value: Any, depth: int) -> Iterator[tuple[str, object]]:
    """Yield each pipeline variable in a value, with its place in it: an object of the SageMaker SDK's ``workflow``."""
    # Some of them are strings, too.
    modules = [base.__module__ for base in type(value).__mro__]
    if any(module.startswith("sagemaker.") and ".workflow." in f"{module}." for module in modules):
        yield where, value
    elif depth and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _variables(f"{where}[{key!r}]", item, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _variables(f"{where}[{index}]", item, depth - 1)
