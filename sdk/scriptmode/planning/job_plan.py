"""`Plan`: what a training job would do, as a value with a text. Pure."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from scriptmode.planning.host_plans import HostPlans
from scriptmode.planning.plan_parts import Difference, HostPlan, SourcePlan
from scriptmode_runtime.plan import ProcessSpec, Wait

#: Fields of a process and a wait that tell how the launcher stops the one, and where it waits for the other.
_OF_THE_LAUNCHER = ("stop", "endpoint")


@dataclass(frozen=True)
class Plan:
    """What `Estimator.fit` would do. Print it, or use `to_dict` in programs.

    Attributes:
        request: The exact CreateTrainingJob request, with secrets. All other attributes have ``******`` for secrets.
        hosts: The hosts by their names.
        source: The source archive; ``None`` if the job has none.
        assumed: What was assumed because it cannot be known before the job starts, one sentence each.
        difference: The difference to the job that was named by ``against``, if any.
        script: The batch script that Slurm would get; ``""`` for a job that no scheduler starts.
    """

    request: Mapping[str, Any]
    hosts: Mapping[str, HostPlan]
    source: SourcePlan | None
    assumed: tuple[str, ...]
    difference: Difference | None
    _shown: Mapping[str, Any]
    script: str = ""

    @property
    def job_name(self) -> str:
        """The training job's name."""
        return str(self.request["TrainingJobName"])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict for ``json.dumps``, without secrets."""
        document: dict[str, Any] = _document(self)
        del document["_shown"]
        if not self.script:
            del document["script"]
        return {**document, "request": dict(self._shown)}

    def text(self, *, width: int = 118) -> str:
        """Return the essential lines of the plan, or with ``against`` the difference alone, without secrets.

        Args:
            width: The number of columns.
        """
        from scriptmode.core.request import parse
        from scriptmode.planning import plan_summary

        if self.difference:
            rows = plan_summary.difference_rows(self.difference)
        else:
            job = parse.parse_request(self._shown)
            rows = plan_summary.summary_rows(job, self.hosts, self.source, self.assumed)
        lines = [line for row in rows for line in row.lines(width)]
        if self.script and not self.difference:
            title = "Batch script (sbatch)" if self.script.startswith("#!") else "Manifests"
            lines += ["", title, *(f"  {line}".rstrip() for line in self.script.splitlines())]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.text()}\n\nThe whole plan: plan.to_dict()"

    def __repr__(self) -> str:
        from scriptmode.core.request import parse

        types = "/".join(dict.fromkeys(parse.parse_request(self._shown).resources.types))
        return f"Plan({self.job_name!r}: {len(self.hosts)} x {types})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _document(value: Any) -> Any:
    """Convert a value of the plan's classes to JSON's types; values that are already JSON are not copied."""
    if is_dataclass(value):
        return {field.name: _document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (ProcessSpec, Wait)):
        return {name: _document(each) for name, each in value._asdict().items() if name not in _OF_THE_LAUNCHER}
    if isinstance(value, tuple):
        return [_document(each) for each in value]
    if isinstance(value, HostPlans) or (isinstance(value, dict) and any(map(is_dataclass, value.values()))):
        return {key: _document(each) for key, each in value.items()}
    return value
