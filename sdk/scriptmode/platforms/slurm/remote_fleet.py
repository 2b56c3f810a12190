"""The hosts of a job on nodes that do not see its directory: its agent is a process of the login node.

The batch script starts `node_host` on each node, which connects to the login node.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.core.text.messages import Problem
from scriptmode.data.durable import replace_file
from scriptmode.errors import DataError, PlatformError
from scriptmode.platforms.local.hosts.agent_control import Presence, StopReason, record_termination
from scriptmode.platforms.local.hosts.fleet import Fleet
from scriptmode.platforms.local.hosts.process_fleet import ProcessFleet
from scriptmode.platforms.local.remote.connection import has_place, open_listener, record_place, start_relay
from scriptmode.platforms.local.store.engine_record import read_engine_record, write_engine_record
from scriptmode.platforms.opt_ml import Sandbox, cluster_of_machines, with_copied_source
from scriptmode.platforms.slurm import addresses, batch_script, checks, commands, node_host, steps
from scriptmode.platforms.slurm.slurm_agent import (
    CLUSTER,
    NUMBER,
    LoginNodeAgent,
    cluster_name,
    find_number,
    locate_job,
)
from scriptmode.platforms.slurm.slurm_settings import settings_from_json
from scriptmode_runtime import contract

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    from scriptmode.platforms.local.hosts.fleet import Serve, StartedAgent
    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.platforms.local.system.forked_tasks import Tasks

#: The batch script in the job's folder.
SCRIPT = "job.sh"
#: Runs the step, whose programs get SIGTERM at the notice of the time limit, which goes to the batch script alone.
_RUN_STEP = """
trap 'scancel --signal=TERM "$SLURM_JOB_ID"' USR1
"$@" &
wait $!
code=$?
while kill -0 $! 2>/dev/null; do
    wait $!
    code=$?
done
exit $code
"""
#: How a host ends by SIGTERM: as its own process, and as the program of a shell.
_TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)
#: Seconds in which the batch job of hosts that have ended ends, and between two looks.
_END_SECONDS, _POLL_SECONDS = 15.0, 0.5


def own_address() -> str:
    """Return the address by which the cluster's nodes reach this machine; raise `PlatformError`."""
    node = next(iter(commands.find_nodes("").values()))
    return addresses.find_own_address(addresses.resolve_address(node.name, node.address))


def render(job: Job, address: str = "ADDRESS", ports: Sequence[int] = (), connection: str = "******") -> str:
    """Return the batch script; the hosts connect to these ports, in their order, of the login node's address.

    Raises `DataError` for hosts of several partitions.
    """
    settings = settings_from_json(job.engine)
    partitions = [each.partition for each in batch_script.components(job.request.resources, settings)]
    if len(partitions) > 1:
        what = f"the hosts are in the partitions {', '.join(partitions)}, and shared_files is False"
        raise DataError(what, argument="instance_groups", advice="use one partition")
    words = (job.request.name, address, settings.interface, *map(str, ports or [0] * job.request.resources.count))
    step = steps.job_command((sys.executable, "-m", node_host.__name__, *words))
    command = ("/bin/bash", "-c", _RUN_STEP, SCRIPT, *step)
    maximum, default = checks.time_limits(job.request.resources, settings)
    # Not in the environment, of which the option export may let nothing through.
    settings = replace(settings, setup=(*settings.setup, f"export {node_host.SECRET_VARIABLE}={connection}"))
    return batch_script.render_batch_script(job, settings, os.devnull, command, maximum, default)


class RemoteFleet(Fleet):
    """All hosts of a job, each of them a task of one step, on a node of its own."""

    no_model_message = ProcessFleet.no_model_message

    def __init__(self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        self.folder = folder
        self.job = job
        self._tasks = tasks
        self._inherited = inherited
        self._connection, self._secret = secrets.token_hex(32), secrets.token_hex(32)
        self._listeners: dict[str, socket.socket] = {}
        self.sandboxes = {
            name: Sandbox(name, folder.host(name), contract.DEFAULT_BASE_DIR) for name in job.request.resources.hosts
        }

    def prepare(self) -> None:
        """Open a port for each host, and submit the batch script."""
        # Of an earlier run.
        record_termination(self.folder, None)
        for sandbox in self.sandboxes.values():
            sandbox.base.mkdir(parents=True, exist_ok=True)
        try:
            address = own_address()
            self._listeners = {host: open_listener(address, self._tasks) for host in self.sandboxes}
            ports = [each.getsockname()[1] for each in self._listeners.values()]
            self._submit(render(self.job, address, ports, self._connection))
        except PlatformError as error:
            raise DataError(error.message, advice=error.advice) from error

    def _submit(self, script: str) -> None:
        path = self.folder.path / SCRIPT
        # No other user can read it.
        replace_file(path, script.encode())
        number = commands.submit(path, environ=batch_script.submission_environment(script, self._inherited))
        record = {**read_engine_record(self.folder), NUMBER: str(number), CLUSTER: cluster_name()}
        write_engine_record(self.folder, record)

    def start_agents(self, serve: Serve) -> Sequence[StartedAgent]:  # noqa: ARG002 - no agent is a fork
        """Start a relay for each host."""
        job = self.folder, self.job
        return [
            start_relay(job, host, listener, self._connection, _NodeHooks(self, host), self._tasks)
            for host, listener in self._listeners.items()
        ]

    def write_sandbox(self, host: str, address: str, folder: str) -> bool:
        """Write a host's sandbox once the places of all hosts are known; return whether it is written."""
        places = record_place(self.folder, host, (address, folder), self.sandboxes)
        if not places:
            return False
        there = {each: Sandbox(each, Path(place, "hosts", each)) for each, (_, place) in places.items()}
        content = cluster_of_machines(
            there,
            {each: place[0] for each, place in places.items()},
            dict.fromkeys(places, addresses.port_block(find_number(self.folder) or 0)),
            self._secret,
            environments=f"{folder}/environments",
        )
        sandbox = Sandbox(host, self.folder.host(host), str(there[host].base))
        sandbox.prepare(with_copied_source(self.job.request, sandbox), content)
        return True

    def remove_hosts(self) -> list[str]:
        """Ensure that the batch job ends: by itself, as its hosts did, or cancelled."""
        number = find_number(self.folder)
        if number is None:
            return []
        deadline = time.monotonic() + _END_SECONDS
        try:
            while (status := commands.find_details(number)) and status.is_active:
                if status.state != commands.RUNNING or time.monotonic() > deadline:
                    commands.cancel(number)
                    break
                time.sleep(_POLL_SECONDS)
        except PlatformError as error:
            return [f"Slurm job {number} may still run: {error}"]
        return []


class _NodeHooks:
    """What a relay asks Slurm about the node of its host."""

    def __init__(self, fleet: RemoteFleet, host: str) -> None:
        self._fleet = fleet
        self._host = host

    def waits_for(self) -> str:
        """Return what the batch job waits for; raise `PlatformError` for one that never starts."""
        if self._host != next(iter(self._fleet.sandboxes)):
            # The first host's relay asks for all.
            return ""
        location = locate_job(self._fleet.folder)
        if location.never_starts:
            raise PlatformError(location.message)
        return location.message.replace("Waiting in ", "", 1) or f"the program of {self._host} on its node"

    def prepare(self, address: str, folder: str) -> bool:
        """Write the sandbox once every host has a place."""
        return self._fleet.write_sandbox(self._host, address, folder)

    def describe_loss(self) -> str:
        """Return how the batch job ended; "" while Slurm has it."""
        has_begun = has_place(self._fleet.folder, self._host)
        if not has_begun and self._host != next(iter(self._fleet.sandboxes)):
            return ""
        location = locate_job(self._fleet.folder)
        if location.presence is not Presence.GONE:
            return ""
        if has_begun or location.termination.reason is not StopReason.UNKNOWN:
            return location.termination.text
        what = f"Slurm job {find_number(self._fleet.folder)} ended before its program began on the nodes"
        command = f"srun --nodes={len(self._fleet.sandboxes)} {sys.executable} -m scriptmode --version"
        return str(Problem(what, f"see whether each node has this version of scriptmode: {command}"))

    def explain_end(self, code: int) -> str:
        """Record why Slurm ends the job, if it does; return nothing."""
        if code in _TERMINATED:
            # Before the batch job has ended: Slurm calls it completed then.
            LoginNodeAgent().record_termination(self._fleet.folder)
        return ""
