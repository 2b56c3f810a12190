"""What a job would do, before it does anything; and what each of its hosts is in it."""

from __future__ import annotations

from scriptmode.planning.job_plan import Change, Difference, HostPlan, Plan, Process, SourcePlan, Wait
from scriptmode.planning.role_query import host_roles

__all__ = ["Change", "Difference", "HostPlan", "Plan", "Process", "SourcePlan", "Wait", "host_roles"]
