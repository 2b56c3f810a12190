"""The hosts of a job on a cluster: `SlurmFleet` for the job's agent, `NodeFleet` for a host's agent on its node."""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.machine.programs import run_program
from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataError, PlatformError
from scriptmode_local._data import file_uris, mounts
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._hosts.fleet import Fleet, Serve, StartedAgent
from scriptmode_local._hosts.host_identity import write_hosts_file
from scriptmode_local._hosts.process_fleet import ProcessFleet
from scriptmode_local._opt_ml.opt_ml import Sandbox, checkpoints_path, cluster_of_machines
from scriptmode_local._store.host_logs import last_lines
from scriptmode_runtime import contract
from scriptmode_runtime._files import scratch
from scriptmode_runtime._values.errors import ClusterError
from scriptmode_slurm._engine import addresses, batch_script, commands, steps
from scriptmode_slurm._engine.settings import settings_from_json

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks

_ADDRESS_SECONDS = 60.0
#: Seconds in which Slurm has to say whether a node is lost.
_ANSWER_SECONDS = 2.0


class SlurmFleet(Fleet):
    """All hosts of a job, each of them a step on a node of its own."""

    def __init__(self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        super().__init__(folder, job, tasks, inherited)
        self._steps: Mapping[str, steps.StartedStep] = {}
        self.sandboxes = {name: Sandbox(name, folder.host(name)) for name in job.request.resources.hosts}

    def _find_addresses(self) -> dict[str, str]:
        """Return the address of each host: its node's in Slurm's configuration, or that of the interface to use."""
        if interface := settings_from_json(self._job.engine).interface:
            return {host: self._ask_address(host, interface) for host in self.sandboxes}
        names = {host: step.node.name for host, step in self._steps.items()}
        nodes = commands.find_nodes(names.values())
        resolved = {host: addresses.resolve_address(name, nodes[name]["NodeAddr"]) for host, name in names.items()}
        # This node may know itself by a loopback address alone.
        others = [address for address in resolved.values() if not addresses.is_loopback(address)]
        own = self._inherited.get("SLURMD_NODENAME", "")
        for host, name in names.items():
            if name == own and addresses.is_loopback(resolved[host]):
                resolved[host] = addresses.find_own_address(*others[:1]) or resolved[host]
        return resolved

    def _ask_address(self, host: str, interface: str) -> str:
        node = self._steps[host].node
        command = steps.step_command(node, host, (sys.executable, "-m", addresses.__name__, interface))
        done = run_program(command, _ADDRESS_SECONDS, env=steps.step_environment(self._inherited))
        if done.code or not done.output.strip():
            raise DataError(
                f"node {node.name} has no address in {interface!r}" + (f": {done.failure}" if done.code else ""),
                argument="interface",
                advice=f"see its interfaces: srun --nodelist={node.name} ip address",
            )
        return done.output.split()[0]

    def start_agents(self, serve: Serve) -> Sequence[StartedAgent]:  # noqa: ARG002 - no agent is a fork
        """Write the configuration files of the hosts, whose agents have been started on a node each, and wait."""
        ports, places = {}, {}
        self._steps = started = steps.STARTED.get({})
        if self.sandboxes.keys() - started.keys():
            # All of them, or those whose early start failed.
            steps.start_steps(started, str(self._folder.path), self.sandboxes, self._inherited, commands.expand_nodes)
        for host, step in self._steps.items():
            ports[host] = addresses.port_block(step.node.job)
            places[host] = f"Slurm job {step.node.job}, partition {step.node.partition}, {step.node.name}"
            self._tasks.keep_private(step.commands, step.events)
        if missing := self.sandboxes.keys() - self._steps.keys():
            what = f"Slurm gave the job {len(self._steps)} nodes, so there is none for {min(missing)}"
            raise DataError(what, advice="leave options out that change the number of nodes")
        self._folder.write_places(places)
        resolved = self._find_addresses()
        write_hosts_file(self._folder.channels / "hosts", resolved)
        content = cluster_of_machines(self.sandboxes, resolved, ports, os.urandom(32).hex())
        for sandbox in self.sandboxes.values():
            sandbox.prepare(self._job.request, content)
        first, *others = [StartedAgent((host,), *step[1:]) for host, step in self._steps.items()]
        return [replace(first, warning=self._describe_setup()), *others]

    def _describe_setup(self) -> str:
        """Return which lines of the setup failed, each with what was written before it; "" if none did."""
        told = last_lines(self._folder.path / batch_script.SETUP_LOG, lines=1000, limit=100_000).splitlines()
        pairs = (pair for pair in zip(["", *told], told) if pair[1].startswith(batch_script.SETUP_FAILED))
        failed = "; ".join(": ".join(filter(None, pair)) for pair in [*pairs][:3])
        return f"a line of Slurm(setup=...) failed: {failed}" if failed else ""

    def find_disconnected(self, code: int | None = None) -> Problem | None:  # noqa: ARG002 - whatever it is
        """Return which host's node does not answer Slurm any more; the other hosts fail before Slurm ends the job."""
        hosts = {step.node.name: host for host, step in self._steps.items()}
        # The hosts that are left run until the answer.
        with suppress(PlatformError):
            for name, node in commands.find_nodes(hosts, wait=0, seconds=_ANSWER_SECONDS).items():
                state = node["State"]
                if state.startswith("DOWN") or "*" in state or "NOT_RESPONDING" in state:
                    return Problem(f"{hosts[name]} was lost with its node {name}, which is {state} for Slurm")
        return None

    def remove_hosts(self) -> list[str]:
        """Ensure that this node sees what the hosts wrote; Slurm ends what is left of them with the job."""
        for sandbox in self.sandboxes.values():
            for path in (contract.MODEL_DIR, contract.OUTPUT_DIR, checkpoints_path(self._job.request.output)):
                _revalidate(sandbox.base / path)
        return []


class NodeFleet(ProcessFleet):
    """One host of a job, on the node of this process.

    Channels, FIFOs and mounts are in a directory of the node's own disk, in TMPDIR, to which the sandbox has a link.
    """

    def __init__(self, folder: JobFolder, job: Job, host: str, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        """Prepare the node; raise `DataError` or ``OSError`` where it cannot have the host."""
        # Nothing binds the processes of many sites' jobs to their CPUs, so the kernel shows those of the whole node.
        cpus = {contract.CPUS_VARIABLE: inherited.get("SLURM_CPUS_ON_NODE", "")}
        super().__init__(folder, job, tasks, {**cpus, **inherited})
        _require_shared(job, host, os.uname().nodename)
        sandbox = Sandbox(host, folder.host(host))
        sandbox = replace(sandbox, network_interface=_find_interface(sandbox))
        sandbox.write_resource_config(job.request)
        self.sandboxes = {host: sandbox}
        self._own_disk = ExitStack()
        self._directory = self._create_directory(sandbox.base / contract.DATA_DIR, inherited.get("TMPDIR", ""))
        self.staging = StagingArea(self._directory / "channels", links_files=True)

    def _create_directory(self, data: Path, tmpdir: str) -> Path:
        try:
            directory = Path(self._own_disk.enter_context(scratch.directory(tmpdir)))
        except ClusterError as error:
            raise DataError(f"the node's own disk cannot be used: {error}") from error
        (directory / "data").mkdir()
        if not data.is_symlink():
            data.rmdir()
        else:
            data.unlink()
        data.symlink_to(directory / "data")
        return directory

    def release_machine(self) -> Problem | None:
        """Remove what was staged on the node's own disk."""
        misplaced = super().release_machine()
        with suppress(DataError):
            # What a process of the host mounted there; what stays mounted is not removed.
            mounts.detach(self._directory)
        self._own_disk.close()
        return misplaced


def _revalidate(directory: Path) -> None:
    """Change a directory and all below it, so that NFS reads their entries again; it caches them for up to a minute."""
    left = [os.fspath(directory)]
    while left:
        path = left.pop()
        with suppress(OSError):
            # A directory, because a task that still copies checkpoints copies files.
            changed = os.path.join(path, f".scriptmode-{os.urandom(8).hex()}")  # noqa: PTH118 - of thousands
            os.mkdir(changed)  # noqa: PTH102
            os.rmdir(changed)  # noqa: PTH106
        with suppress(OSError), os.scandir(path) as entries:
            left += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _require_shared(job: Job, host: str, node: str) -> None:
    """Raise `DataError` for an interpreter or a channel that this node does not have, though the login node does."""
    algorithm = job.request.algorithm
    if not algorithm.container_entry_point and not shutil.which(job.python):
        raise DataError(
            f"{node} does not have the interpreter {job.python!r}",
            advice="give Slurm(python=...) one on a file system that all nodes share; check: "
            "scriptmode doctor --platform slurm",
        )
    for channel in job.request.channels:
        uri = str(getattr(channel.source, "s3_data", ""))
        if file_uris.is_file(uri) and host in job.request.channel_hosts(channel):
            path = file_uris.file_path(uri)
            # The URI may also be the beginning of names.
            if not path.exists() and not list(path.parent.glob(f"{glob.escape(path.name)}*")):
                what = f"{node} does not have {str(path)!r} of channel {channel.name!r}"
                raise DataError(what, advice="name a path on a file system that all nodes share, or an s3:// URI")


def _find_interface(sandbox: Sandbox) -> str:
    address = sandbox.read_addresses()[sandbox.host]
    if interface := addresses.find_interface(address, addresses.list_interfaces()):
        return interface
    raise DataError(
        f"{sandbox.host}: its node has no interface with the address {address}, which Slurm's configuration has for it",
        advice="give Slurm(interface=...), the name or the network of the interface between the nodes",
    )
