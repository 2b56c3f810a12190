"""`Plan`: what a training job would do, as a value with a text. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scriptmode._core.request.parse import parse_request
from scriptmode.planning._plan_parts import HostPlan, SourcePlan

#: The most hosts of a job whose plans a document has one by one: each names all hosts several times.
_MOST_WHOLE = 64


@dataclass(frozen=True)
class Plan:
    """What `Estimator.fit` would do. Print it, or use `to_dict` in programs.

    Attributes:
        request: The exact CreateTrainingJob request, with secrets. All other attributes have ``******`` for secrets.
        hosts: The hosts by their names.
        source: The source archive; ``None`` if the job has none.
        assumed: What was assumed because it is not known before the job starts, one sentence each.
        script: What a scheduler would get, such as Slurm's batch script; ``""`` for a job that none starts.
    """

    request: Mapping[str, Any]
    hosts: Mapping[str, HostPlan]
    source: SourcePlan | None
    assumed: tuple[str, ...]
    _shown: Mapping[str, Any]
    script: str = ""

    @property
    def job_name(self) -> str:
        """The training job's name."""
        return str(self.request["TrainingJobName"])

    def to_dict(self) -> dict[str, object]:
        """Return the plan as a dict for ``json.dumps``, without secrets.

        With more than 64 hosts, one whose plan differs from another's by names and numbers alone is ``{"like": NAME}``.
        """
        like = {name: {"like": other} for name, other in self._like().items()}
        return {
            "request": dict(self._shown),
            "hosts": {name: like.get(name) or self.hosts[name].to_dict() for name in self.hosts},
            "source": asdict(self.source) if self.source else None,
            "assumed": list(self.assumed),
            **({"script": self.script} if self.script else {}),
        }

    def _like(self) -> dict[str, str]:
        """Return which host each of those is like that have no plan of their own in a document."""
        if len(self.hosts) <= _MOST_WHOLE:
            return {}
        groups = parse_request(self._shown).resources.host_groups
        first: dict[object, str] = {}
        # The first host of a group may be a chief; the names and numbers of roles differ in all.
        names = [
            (name, (group.name, re.sub(r"\d+", "", self.hosts[name].roles)))
            for group in groups
            for name in group.hosts[1:]
        ]
        return {name: other for name, kind in names if (other := first.setdefault(kind, name)) != name}

    def text(self, *, width: int = 118) -> str:
        """Return the essential lines of the plan, without secrets.

        Args:
            width: The number of columns.
        """
        from scriptmode.planning import _plan_summary as plan_summary

        job = parse_request(self._shown)
        lines = [*plan_summary.summary_lines(job, self.hosts, self.source, self.assumed, width)]
        if self.script:
            lines += ["", "What the scheduler gets", *(f"  {line}".rstrip() for line in self.script.splitlines())]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.text()}\n\nThe whole plan: plan.to_dict()"

    def __repr__(self) -> str:
        types = "/".join(dict.fromkeys(parse_request(self._shown).resources.types))
        return f"Plan({self.job_name!r}: {len(self.hosts)} x {types})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
