"""What a job would do, without starting it: `Plan`, which `Estimator.plan` returns; and `host_roles`.

Public are the names in ``__all__``.
"""

from scriptmode.planning._host_plans import host_roles
from scriptmode.planning._job_plan import Plan
from scriptmode.planning._plan_parts import HostPlan, SourcePlan

__all__ = ["HostPlan", "Plan", "SourcePlan", "host_roles"]
