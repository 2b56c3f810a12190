"""Engines of other packages: kinds of hosts that the local platform runs beside processes and containers.

An engine is found by an entry point of the group ``scriptmode.engines``. Its name is the instance type of the hosts,
and its object a `HostKind`, which names the engine's class. The guide "engines" has an example. Engines import nothing
but this module, the errors and the runtime's contract.
"""

from __future__ import annotations

from scriptmode.core.spec.hosts import HostKind
from scriptmode.core.spec.inputs import FileSystemInput
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.spec.service_values import PlannedHost
from scriptmode.core.spec.training_job import TrainingJobSpec
from scriptmode.core.text.messages import Problem, did_you_mean
from scriptmode.data.durable import replace_file
from scriptmode.data.staging import StagingArea
from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.hosts import Host, HostSettings
from scriptmode.platforms.local.hosts.agent_control import (
    StopReason,
    Termination,
    record_termination,
    recorded_termination,
)
from scriptmode.platforms.local.hosts.engine import Engine
from scriptmode.platforms.local.hosts.fleet import Fleet, HostFleet, Serve, StartedAgent
from scriptmode.platforms.local.hosts.job_variables import CREDENTIALS, with_job_variables
from scriptmode.platforms.local.hosts.local_agent import LocalAgent
from scriptmode.platforms.local.hosts.process_engine import ProcessEngine
from scriptmode.platforms.local.hosts.process_fleet import ProcessFleet
from scriptmode.platforms.local.remote.connection import (
    REMOTE_HOST_MODULE,
    open_listener,
    record_address,
    run_host,
    start_relay,
)
from scriptmode.platforms.local.remote.relay import Relay, RemoteHooks
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobFolder, JobStore
from scriptmode.platforms.local.system.forked_tasks import ForkedProcess, Tasks
from scriptmode.platforms.opt_ml import Sandbox, open_to_all_users, with_copied_source
from scriptmode.platforms.planned_containers import plan_container_hosts
from scriptmode_runtime.processes import process_tree

__all__ = [
    "CREDENTIALS", "REMOTE_HOST_MODULE", "Engine", "FileSystemInput", "Fleet", "ForkedProcess", "Host", "HostFleet",
    "HostKind", "HostSettings", "Job", "JobFolder", "JobRequest", "JobStore", "LocalAgent", "LocalPlatform",
    "PlannedHost", "Problem", "ProcessEngine", "ProcessFleet", "Relay", "RemoteHooks", "Sandbox", "Serve",
    "StagingArea", "StartedAgent", "StopReason", "Tasks", "Termination", "TrainingJobSpec", "did_you_mean",
    "open_listener", "open_to_all_users", "plan_container_hosts", "process_tree",
    "record_address", "record_termination", "recorded_termination", "replace_file", "run_host", "start_relay",
    "with_copied_source", "with_job_variables",
]  # fmt: skip
