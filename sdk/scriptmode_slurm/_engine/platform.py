"""`Slurm`: the local platform with the settings of a Slurm cluster, on whose nodes the hosts run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.text.messages import did_you_mean_path, warn_caller
from scriptmode.errors import invalid
from scriptmode_local._service.service import LocalPlatform
from scriptmode_runtime.contract import DEFAULT_STOP_GRACE
from scriptmode_slurm import SLURM
from scriptmode_slurm._engine import commands
from scriptmode_slurm._engine.batch_script import count_nodes
from scriptmode_slurm._engine.settings import REFUSED_IN_HEADER, parse_settings

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import TrainingJobSpec

#: Arguments of `LocalPlatform` that have no effect on a cluster.
_OF_THIS_MACHINE = frozenset({"queue", "force", "container_limits"})


class Slurm(LocalPlatform):
    """A Slurm cluster, with this process on one of its login nodes.

    Each host of a job with the instance type ``slurm``, or ``slurm:PARTITION``, is a node of the cluster. The jobs are
    in a data directory like those of `LocalPlatform`, on a file system that all nodes share.
    Settings that are not given are those of the variable SCRIPTMODE_SLURM (``partition=gpu,account=vision``),
    then those of the key ``slurm`` of the file ``scriptmode/config.yaml`` in the user's directory of config files, then
    of the site's.

    Args:
        data_dir: Directory of the jobs. Default: the variable SCRIPTMODE_DATA_DIR, else the user's data directory.
        python: Interpreter of the hosts, at the same path on all nodes. Default: the running one.
        stop_grace: Seconds from SIGTERM to SIGKILL when a job is stopped or preempted.
        file_systems: Directories that stand for EFS and FSx for Lustre file systems, as for `LocalPlatform`.
        setup: Lines of the batch script before the job starts, such as ``("module load cuda",)``.
        interface: Name of the network interface between the hosts, such as ``"ib0"``, or its network, such as
            ``"10.1.0.0/16"``. Default: the one of the nodes' addresses.
        options: Options of sbatch by their long names, with ``_`` for ``-``: ``partition="gpu"``,
            ``gres="gpu:4"``, ``exclusive=True``. They go to sbatch as they are, and it refuses wrong
            ones in its words. Options that a job sets by itself are refused. Also
            ``partitions``, options of the hosts of one partition by its name
            (``{"cpu": {"gres": None, "mem": "64G"}}``), and ``min_nodes``, the number of nodes with which a run may
            start where not all are free.

    Raises:
        SpecError: A setting is wrong.
        ConfigError: A config file is wrong.

    """

    #: Seconds between two looks at a job's files, which are on a shared file system.
    poll_seconds = 0.2

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        python: str | os.PathLike[str] | None = None,
        stop_grace: float = DEFAULT_STOP_GRACE,
        file_systems: Mapping[str, str | os.PathLike[str]] | None = None,
        setup: str | tuple[str, ...] | None = None,
        interface: str | None = None,
        **options: object,
    ) -> None:
        super().__init__(data_dir=data_dir, python=python, stop_grace=stop_grace, file_systems=file_systems)
        given = {"setup": setup, "interface": interface, **options}
        # Now, so that a wrong setting is reported where it stands.
        parse_settings(given, os.environ)
        self._settings = replace(
            self._settings, options={name: value for name, value in given.items() if value is not None}
        )

    @classmethod
    def from_sbatch(cls, script: str | os.PathLike[str], **arguments: Any) -> Slurm:
        """Return a cluster whose jobs have the lines ``#SBATCH`` of a batch script, as sbatch reads them.

        A job sets name, logs and number of nodes by itself; a host has the tasks that the script has on a node.

        Args:
            script: Path of the script.
            arguments: Arguments of `Slurm`, which replace options of the script.

        Raises:
            SpecError: The script cannot be read, or is not one of a single job.
            PlatformError: sbatch refuses the header.

        """
        path, advice = Path(script), "give the batch script of one job"
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            advice = (isinstance(error, FileNotFoundError) and did_you_mean_path(path)) or advice
            raise invalid("script", f"is {os.fspath(script)!r}: {why}", advice) from error
        options, *others = commands.read_header(path)
        if refused := [name for name in REFUSED_IN_HEADER if name in options] or ["hetjob"] * len(others):
            raise invalid("script", f"is {os.fspath(script)!r}, which has {refused[0]!r}", advice)
        # For sbatch, the first command ends the header.
        comments = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
        header = {"lines": [line for line in comments if line.startswith("#SBATCH")], "options": options}
        if not header["lines"]:
            raise invalid("script", f"is {os.fspath(script)!r}, which has no line #SBATCH before a command", advice)
        notice = {name: value for name, value in options.items() if name == "signal"}
        return cls(**{"header": header, **notice, **arguments})

    @property
    def header_nodes(self) -> int:
        """The number of nodes that the header of `from_sbatch` asks for; 1 without one."""
        header: Any = self._settings.options.get("header", {})
        return count_nodes(header.get("options", {}), 1)

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments with which another process creates this platform, as JSON has them."""
        own = {name: value for name, value in super().arguments.items() if name not in _OF_THIS_MACHINE}
        return {**own, "platform": f"{__name__}:Slurm", "options": dict(self._settings.options)}

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in what `LocalPlatform.complete` does, after Slurm answered.

        Raises:
            SpecError: The hosts are of another kind.
            PlatformError: Slurm does not answer, or ``python`` cannot run the hosts.

        """
        if spec.resources.host_kind is not SLURM:
            what = f"{spec.resources.types[0]!r} is not a node of a Slurm cluster"
            advice = "use 'slurm' or 'slurm:PARTITION', or leave platform out"
            raise invalid("instance_type", what, advice)
        header: Any = self._settings.options.get("header", {})
        given = {"partition": spec.resources.types[0].partition(":")[2], "nodes": str(spec.resources.count)}
        for name, value in given.items():
            if value and (before := header.get("options", {}).get(name, value)) != value:
                warn_caller(f"the job has {name}={value}, which replaces {name}={before} of the batch script")
        return super().complete(spec)
