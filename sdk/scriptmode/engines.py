"""Engines of other packages: kinds of hosts that the local platform runs beside processes and containers.

An engine is found by an entry point of the group ``scriptmode.engines``. Its name is the instance type of the hosts,
and its object a `HostKind`, which names the engine's class. The guide "engines" has an example. Engines import nothing
but this module, the errors and the runtime's contract.
"""

from __future__ import annotations

from scriptmode._core.spec.hosts import HostKind
from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.service_values import PlannedHost
from scriptmode._core.spec.training_job import TrainingJobSpec
from scriptmode._core.text.messages import Problem, did_you_mean
from scriptmode_local import LocalPlatform
from scriptmode_local._data.durable import replace_file
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._hosts import Host, HostSettings
from scriptmode_local._hosts.agent_control import StopReason, Termination, record_termination, recorded_termination
from scriptmode_local._hosts.engine import Engine
from scriptmode_local._hosts.fleet import Fleet, Serve, StartedAgent
from scriptmode_local._hosts.job_variables import CREDENTIALS, with_job_variables
from scriptmode_local._hosts.process_engine import ProcessEngine
from scriptmode_local._hosts.process_fleet import ProcessFleet
from scriptmode_local._opt_ml.opt_ml import Sandbox, open_to_all_users, with_copied_source
from scriptmode_local._opt_ml.planned_containers import plan_container_hosts
from scriptmode_local._remote.connection import REMOTE_HOST_MODULE, open_listener, record_address, run_host, start_relay
from scriptmode_local._remote.relay import Relay, RemoteHooks
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder, JobStore
from scriptmode_local._system.forked_tasks import ForkedProcess, Tasks
from scriptmode_runtime.processes import process_tree

__all__ = [
    "CREDENTIALS", "REMOTE_HOST_MODULE", "Engine", "FileSystemInput", "Fleet", "ForkedProcess", "Host",
    "HostKind", "HostSettings", "Job", "JobFolder", "JobRequest", "JobStore", "LocalPlatform",
    "PlannedHost", "Problem", "ProcessEngine", "ProcessFleet", "Relay", "RemoteHooks", "Sandbox", "Serve",
    "StagingArea", "StartedAgent", "StopReason", "Tasks", "Termination", "TrainingJobSpec", "did_you_mean",
    "open_listener", "open_to_all_users", "plan_container_hosts", "process_tree",
    "record_address", "record_termination", "recorded_termination", "replace_file", "run_host", "start_relay",
    "with_copied_source", "with_job_variables",
]  # fmt: skip
