"""What a job would do, without starting it: `Plan`, which `Estimator.plan` returns; and `host_roles`.

Public are the names in ``__all__``. A plan is made from the platform's request and from the runtime's own plan of each
host:

* ``planner``: creates a plan of a request.
* ``job_plan``, ``plan_parts``, ``plan_text``: the plan, the values it consists of, and its text.
* ``runtime_query``: asks the runtime's ``preview`` what the hosts would run.
* ``assumptions``: what is assumed of images and instance types that cannot be inspected before the job starts.
* ``archive_contents``: reads a source archive.
* ``difference``: compares a plan with a job.
* ``early_checks``: what is refused and warned of before a job starts; ``script_text`` and ``interpreter_query``: what
  the script's text shows, and what the hosts' interpreter answers about it.
* ``role_query``: the role of each host of a job.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode.planning.job_plan import Plan
    from scriptmode.planning.plan_parts import Change, Difference, HostPlan, SourcePlan
    from scriptmode.planning.role_query import host_roles
else:

    def __getattr__(name: str) -> Any:
        # Imported on first use: every `fit` imports `early_checks`, and few make a plan.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = {"Plan": "job_plan", "host_roles": "role_query"}.get(name, "plan_parts")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = ["Change", "Difference", "HostPlan", "Plan", "SourcePlan", "host_roles"]
