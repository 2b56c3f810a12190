"""What a job would do, before it does anything; and what each of its hosts is in it."""

from __future__ import annotations

from scriptmode.planning.hosts import host_roles
from scriptmode.planning.plan import Change, Difference, HostPlan, Plan, Process, SourcePlan, Wait

__all__ = ["Change", "Difference", "HostPlan", "Plan", "Process", "SourcePlan", "Wait", "host_roles"]
