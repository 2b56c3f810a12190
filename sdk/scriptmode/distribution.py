"""How a script is spread over hosts and processes: three small values, and the SageMaker SDK's dict spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Union

from scriptmode.errors import SpecError, suggestion


@dataclass(frozen=True)
class ParameterServer:
    """Parameter servers beside the workers, one of each a host.

    ``coordinator=False`` is the between-graph layout (``tf.estimator``, TF1 sessions): every host runs the script as
    master or worker. ``coordinator=True`` is TensorFlow 2's ``ParameterServerStrategy``: the first host runs the script
    as chief, and the runtime runs the worker and ps servers. ``instance_groups`` limits the cluster to those groups.
    """

    coordinator: bool = False
    instance_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.coordinator, bool):
            raise SpecError(f"ParameterServer coordinator is {self.coordinator!r}; say True or False")


@dataclass(frozen=True)
class MultiWorkerMirrored:
    """``tf.distribute.MultiWorkerMirroredStrategy``: every host runs the script as one worker of a ring."""

    instance_groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class MPI:
    """The script under ``mpirun``, for Horovod and mpi4py.

    ``processes_per_host`` defaults to the host's GPUs, or 1. ``custom_mpi_options`` is split as a shell splits words.
    """

    processes_per_host: int | None = None
    custom_mpi_options: str = ""
    instance_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = self.processes_per_host
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise SpecError(f"MPI processes_per_host is {count!r}; give a whole number of at least 1")
        if not isinstance(self.custom_mpi_options, str):
            raise SpecError(f"MPI custom_mpi_options is {self.custom_mpi_options!r}; give one string of mpirun options")
        import shlex

        try:
            shlex.split(self.custom_mpi_options)
        except ValueError as error:
            raise SpecError(f"MPI custom_mpi_options {self.custom_mpi_options!r} cannot be split: {error}") from error


Distribution = Union[ParameterServer, MultiWorkerMirrored, MPI]

_KINDS: dict[str, tuple[Callable[..., Distribution], tuple[str, ...]]] = {
    "parameter_server": (ParameterServer, ("coordinator",)),
    "multi_worker_mirrored_strategy": (MultiWorkerMirrored, ()),
    "mpi": (MPI, ("processes_per_host", "custom_mpi_options")),
}
#: Kinds of the SageMaker SDK that need AWS's own libraries inside AWS's own images.
_ELSEWHERE = ("smdistributed", "torch_distributed", "pytorchddp", "pytorchxla")


def parse(value: object) -> Distribution | None:
    """Give the distribution that a value or the dict spelling names; ``None`` for none.

    Raises `SpecError` for unknown keys, for two kinds at once and for wrong values. The dict is not changed.
    """
    if value is None or isinstance(value, (ParameterServer, MultiWorkerMirrored, MPI)):
        return value
    if not isinstance(value, Mapping):
        raise SpecError(
            f"distribution is {value!r}; give ParameterServer(), MultiWorkerMirrored(), MPI() or a dict such as "
            "{'mpi': {'enabled': True}}"
        )
    groups = _group_names(value.get("instance_groups", ()))
    enabled = {}
    for kind, options in value.items():
        if kind == "instance_groups":
            continue
        if kind in _ELSEWHERE:
            raise SpecError(f"distribution[{kind!r}] is not supported; use one of {', '.join(map(repr, _KINDS))}")
        if kind not in _KINDS:
            raise SpecError(f"distribution has no key {kind!r}{suggestion(str(kind), [*_KINDS, 'instance_groups'])}")
        parsed = _parse_kind(kind, options, groups)
        if parsed is not None:
            enabled[kind] = parsed
    if len(enabled) > 1:
        raise SpecError(f"distribution enables {' and '.join(map(repr, enabled))}; a job has one, disable the others")
    if groups and not enabled:
        raise SpecError("distribution names instance_groups but enables nothing to run on them; add one of its kinds")
    return next(iter(enabled.values()), None)


def _parse_kind(kind: str, options: object, groups: tuple[str, ...]) -> Distribution | None:
    make, known = _KINDS[kind]
    if not isinstance(options, Mapping):
        raise SpecError(f"distribution[{kind!r}] is {options!r}; give a dict such as {{'enabled': True}}")
    for key in options:
        if key != "enabled" and key not in known:
            raise SpecError(f"distribution[{kind!r}] has no key {key!r}{suggestion(str(key), ['enabled', *known])}")
    switch = options.get("enabled")
    if not isinstance(switch, bool):
        raise SpecError(f"distribution[{kind!r}]['enabled'] is {switch!r}; say True or False")
    arguments: dict[str, Any] = {key: options[key] for key in known if key in options}
    parsed = make(**arguments, instance_groups=groups)
    return parsed if switch else None


def _group_names(groups: object) -> tuple[str, ...]:
    if isinstance(groups, str) or not hasattr(groups, "__iter__"):
        raise SpecError(f"distribution['instance_groups'] is {groups!r}; give a list of instance groups or their names")
    return tuple(str(getattr(group, "instance_group_name", group)) for group in groups)
