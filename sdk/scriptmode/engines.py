"""Engines of other packages: kinds of hosts that the local platform runs beside processes and containers.

An engine is found by an entry point of the group ``scriptmode.engines``. Its name is the instance type of the hosts,
and its object a `HostKind`, which names the engine's class. The guide "engines" has an example. Engines import nothing
but this module, the errors, other public names and the runtime's contract.
"""

from __future__ import annotations

from scriptmode._core.spec.host_values import PlannedHost
from scriptmode._core.spec.hosts import HostKind
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.training_job import TrainingJobSpec
from scriptmode._core.text.messages import Problem
from scriptmode_local._data.durable import replace_file
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._hosts import CREDENTIALS, HostSettings
from scriptmode_local._hosts.agent_control import StopReason, Termination
from scriptmode_local._hosts.engine import Engine
from scriptmode_local._hosts.fleet import Fleet, StartedAgent
from scriptmode_local._hosts.process_engine import ProcessEngine
from scriptmode_local._hosts.process_fleet import ProcessFleet
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._opt_ml.planned_containers import plan_container_hosts
from scriptmode_local._remote.connection import run_host, start_relay
from scriptmode_local._remote.tls_stream import StreamKeys
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system.forked_tasks import Tasks
from scriptmode_runtime._processes import process_tree

__all__ = [
    "CREDENTIALS", "Engine", "Fleet", "HostKind", "HostSettings", "Job", "JobFolder", "JobRequest",
    "PlannedHost", "Problem", "ProcessEngine", "ProcessFleet", "Sandbox", "StagingArea", "StartedAgent", "StopReason",
    "StreamKeys", "Tasks", "Termination", "TrainingJobSpec", "plan_container_hosts", "process_tree",
    "replace_file", "run_host", "start_relay",
]  # fmt: skip
