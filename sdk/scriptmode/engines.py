"""Engines of other packages: kinds of hosts that the local platform runs beside processes, containers and Slurm.

An engine is found by an entry point of the group ``scriptmode.engines``. Its name is the instance type of the hosts,
and its object a `HostKind`, which names the engine's class. The guide "engines" has an example.
"""

from __future__ import annotations

from scriptmode.core.spec.hosts import HostKind
from scriptmode.platforms.local.hosts.engine import Engine
from scriptmode.platforms.local.hosts.process_engine import ProcessEngine

__all__ = ["Engine", "HostKind", "ProcessEngine"]
