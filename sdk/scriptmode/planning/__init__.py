"""What a job would do, without starting it: `Plan`, which `Estimator.plan` returns; and `host_roles`.

Public are the names in ``__all__``. ``planner`` makes a plan from the platform's request and from the runtime's own
plan of each host, which ``runtime_query`` asks for; ``early_checks`` looks at a job before it starts.
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
