"""What a job asks that the cluster cannot give, found before anything is stored or submitted."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from scriptmode.core.spec.training_job import Limits
from scriptmode.core.text.messages import did_you_mean, format_duration, pluralize
from scriptmode.errors import SpecError, invalid
from scriptmode.platforms.slurm import apptainer_images, batch_script, commands
from scriptmode.platforms.slurm.slurm_settings import settings_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode.core.spec.training_job import Resources
    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.slurm.commands import Partition
    from scriptmode.platforms.slurm.slurm_settings import SlurmSettings

#: The number of GPUs in values such as ``gpu:4``, ``gpu:a100:4``, ``a100:4`` and ``4`` (sbatch(1), --gres and --gpus).
_GPUS = re.compile(r"(?:^|,)(?:gres/)?gpu(?::[A-Za-z][\w.-]*)?(?:[:=](\d+))?(?=[,(]|$)")
_COUNT = re.compile(r"(?:[A-Za-z][\w.-]*:)?(\d+)")


def require_partitions(
    resources: Resources,
    limits: Limits,
    settings: SlurmSettings,
    known: Mapping[str, Partition] | None = None,
    *,
    named: Iterable[str] = (),
) -> None:
    """Raise `SpecError` for partitions that do not exist, or that never run a job of this size and time limit.

    ``known`` are those of the cluster, if they are known. ``named`` are others that must exist: a config file may also
    have options for the partitions of another cluster. Raises `PlatformError` where Slurm does not answer.
    """
    known = commands.find_partitions() if known is None else known
    for name in sorted({*named} - known.keys()):
        raise SpecError(
            f"partitions names {name!r}, which the cluster does not have",
            argument="partitions",
            advice=did_you_mean(name, known) or "see the partitions: sinfo",
        )
    for component in batch_script.components(resources, settings):
        # Slurm chooses among the partitions of a list, and sbatch checks them.
        if "," not in component.partition:
            is_limit_given = limits.max_run != Limits.max_run and "time" not in settings.options
            _require_partition(component, known, limits, is_limit_given=is_limit_given)
    _require_nodes_of_components(batch_script.components(resources, settings), known)


def fits_partitions(job: Job) -> bool:
    """Return whether the partitions of a job have, and allow, as many nodes as it needs; raise `PlatformError`."""
    try:
        known = commands.STATES.partitions()
        require_partitions(job.request.resources, Limits(), settings_from_json(job.engine), known)
    except SpecError:
        return False
    return True


def _require_partition(
    component: batch_script.Component, known: Mapping[str, Partition], limits: Limits, *, is_limit_given: bool
) -> None:
    name = component.partition
    if name and name not in known:
        raise SpecError(
            f"the cluster has no partition {name!r}",
            argument="instance_type",
            advice=did_you_mean(name, known) or "see the partitions: sinfo",
        )
    partition = known[name] if name else next((each for each in known.values() if each.is_default), None)
    if partition is None:
        raise SpecError(
            "the cluster has no default partition",
            argument="instance_type",
            advice=f"name one: 'slurm:{next(iter(sorted(known)), 'gpu')}', or Slurm(partition=...)",
        )
    most = min(partition.total_nodes, partition.max_nodes or partition.total_nodes)
    if len(component.hosts) > most:
        why = "allows" if partition.max_nodes == most else "has"
        hosts = pluralize(len(component.hosts), "host")
        raise SpecError(
            f"{hosts} need as many nodes, but partition {partition.name!r} {why} {most}",
            argument="instance_count",
            advice="use fewer hosts, or another partition: sinfo -o '%P %D'",
        )
    if is_limit_given and partition.max_time is not None and limits.max_run > partition.max_time:
        raise SpecError(
            f"max_run is {limits.max_run} s, but partition {partition.name!r} ends jobs after "
            f"{partition.max_time} s ({format_duration(partition.max_time)})",
            argument="max_run",
            advice="give less, or use another partition: sinfo -o '%P %l'",
        )


def _require_nodes_of_components(parts: tuple[batch_script.Component, ...], known: Mapping[str, Partition]) -> None:
    """Raise `SpecError` for a heterogeneous job with more hosts than nodes, which Slurm never starts or refuses.

    It gives each component nodes of its own, also where the partitions have the same nodes.
    """
    default = next((each.name for each in known.values() if each.is_default), "")
    names = sorted({each.partition or default for each in parts})
    if len(parts) == 1 or not known.keys() >= {*names}:
        return
    nodes = {name: commands.expand_nodes(known[name].nodes) for name in names}
    for among in (*([name] for name in names), names):
        hosts = sum(len(each.hosts) for each in parts if (each.partition or default) in among)
        has = len({node for name in among for node in nodes[name]})
        if hosts > has:
            what = f"partition {among[0]!r} has" if len(among) == 1 else f"partitions {', '.join(among)} together have"
            raise SpecError(
                f"{pluralize(hosts, 'host')} need as many nodes, but {what} {has}",
                argument="instance_groups",
                advice="use fewer hosts, or another partition: sinfo -o '%P %N'",
            )


def time_limits(resources: Resources, settings: SlurmSettings) -> tuple[int | None, int | None]:
    """Return the shortest time limit of a job's partitions in seconds, and the one of jobs that name none, or ``None``.

    Raises `PlatformError` where Slurm does not answer.
    """
    known = commands.find_partitions(wait=0)
    default = next((each.name for each in known.values() if each.is_default), "")
    names = {component.partition or default for component in batch_script.components(resources, settings)}
    limits = [(known[name].max_time, known[name].default_time) for name in names if name in known]
    longest = [maximum for maximum, _ in limits if maximum is not None]
    usual = [default or maximum for maximum, default in limits if default or maximum]
    return min(longest, default=None), min((limit for limit in usual if limit is not None), default=None)


def require_image(image_uri: str, settings: SlurmSettings) -> None:
    """Raise `SpecError` if this machine, whose programs the nodes have, cannot run an image, or not such a path."""
    if image_uri.endswith(".sif") and "://" not in image_uri and not image_uri.startswith("/"):
        what = f"is {image_uri!r}, a relative path"
        raise invalid("image_uri", what, "give the absolute path of the file, which all nodes must have")
    if settings.container_runtime or any(map(shutil.which, apptainer_images.PROGRAMS)):
        return
    raise SpecError(
        "image_uri needs Apptainer on the nodes, and this machine does not have it",
        argument="image_uri",
        advice="leave image_uri out, the hosts are processes of the nodes then; or, if the nodes have it, name it: "
        "Slurm(container_runtime='apptainer', setup=('module load apptainer',))",
    )


def gpus_of_host(options: Mapping[str, str | bool], hosts: int) -> int:
    """Return the number of GPUs that the options ask for on each host; 0 for none."""
    for name in ("gres", "tres_per_task"):
        if found := _GPUS.search(str(options.get(name, ""))):
            return int(found[1] or 1)
    for name, divisor in (("gpus_per_node", 1), ("gpus_per_task", 1), ("gpus", hosts)):
        if found := _COUNT.fullmatch(str(options.get(name, ""))):
            return int(found[1]) // divisor
    return 0
