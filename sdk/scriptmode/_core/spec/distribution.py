"""How a script is spread over hosts and processes: three values, and the SageMaker SDK's dict for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from scriptmode._core.spec.whole_numbers import set_truth, set_whole, truth_value
from scriptmode._core.text.messages import did_you_mean, validate_keys
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract
from scriptmode_runtime.contract import ROLES

_ARGUMENT = "distribution"


def _error(what: str, advice: str = "") -> SpecError:
    return SpecError(what, advice, argument=_ARGUMENT)


@dataclass(frozen=True)
class ParameterServer:
    """Parameter servers and workers, one of each on a host.

    Args:
        coordinator: The layout. ``False`` is between-graph replication (``tf.estimator``, TF1 sessions): every host
            runs the script, the first as ``master``, the others as ``worker``. ``True`` is TensorFlow 2's
            ``ParameterServerStrategy``: the first host runs the script as ``chief``, and the runtime runs the worker
            and ps servers.
        instance_groups: Names of the instance groups that form the cluster; needed if the job has more than one.
        evaluator: Whether the last host also runs the script as TensorFlow's ``evaluator``, without its GPUs. The first
            host is a chief then, because a master evaluates itself. The job ends after the evaluator, so the chief must
            save where every host can read, such as ``model_dir``.
        roles: Instance groups by role; their hosts have that role and no other, for example
            ``{"chief": "leader", "worker": ["large", "small"], "ps": "memory", "evaluator": "one"}``. There must be one
            chief (or, without a coordinator, one master, which excludes an evaluator), at least one ps and, with a
            coordinator, at least one worker.
        chief: Whether the first host of the between-graph layout is ``chief`` instead of ``master``, for scripts that
            expect it, such as those of ``tf.distribute``. AWS's images use ``master`` with every TensorFlow.
        ps: The number of hosts, the last ones, that are parameter servers alone; the others have none then.

    Raises:
        SpecError: For arguments that contradict each other.
    """

    coordinator: bool = False
    instance_groups: tuple[str, ...] = ()
    evaluator: bool = False
    #: Names of groups by role, in the order of TensorFlow's task types.
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    chief: bool = False
    ps: int | None = None

    def __post_init__(self) -> None:
        set_truth(self, "coordinator", "ParameterServer coordinator", _ARGUMENT)
        set_truth(self, "chief", "ParameterServer chief", _ARGUMENT)
        if self.chief and self.coordinator:
            raise _error("ParameterServer has chief=True, but a coordinator is always the chief", "leave chief out")
        if self.chief and self.roles:
            raise _error("ParameterServer chief=True and roles both say what the first trainer is", "say it in roles")
        known = [role for role in ROLES if role != "master" or not self.coordinator]
        _validate_roles(self, known, needed=("worker", "ps") if self.coordinator else ("ps",))
        set_whole(self, "ps", "ParameterServer ps", 1, optional=True)
        if self.ps and (self.roles or self.evaluator):
            what = "ParameterServer ps and roles or evaluator both say what the last hosts are"
            raise _error(what, "keep one of them, or name each role's group in roles")
        leads = [role for role in ("master", "chief") if role in self.roles]
        if self.roles and len(leads) != 1:
            none = f"no {'chief' if self.coordinator else 'chief or master'}; give it a group of one host"
            named = "both 'master' and 'chief'; keep one" if leads else none
            raise _error(f"ParameterServer roles names {named}")
        if "master" in leads and "evaluator" in self.roles:
            raise _error(
                "ParameterServer roles names 'master' and 'evaluator'", "a master evaluates itself, call it 'chief'"
            )


@dataclass(frozen=True)
class MultiWorkerMirrored:
    """``tf.distribute.MultiWorkerMirroredStrategy``: every host runs the script as one worker.

    Args:
        instance_groups: Names of the instance groups that form the cluster; needed if the job has more than one.
        evaluator: Whether the last host also runs the script as TensorFlow's ``evaluator``, without its GPUs. Worker 0
            must save where every host can read, such as ``model_dir``.
        roles: Instance groups by role: ``worker``, ``evaluator`` (one host) and ``chief`` (one host; by default worker
            0 is the chief).

    Raises:
        SpecError: For arguments that contradict each other.
    """

    instance_groups: tuple[str, ...] = ()
    evaluator: bool = False
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _validate_roles(self, ["chief", "worker", "evaluator"], needed=("worker",))


@dataclass(frozen=True)
class MPI:
    """The script under ``mpirun``, for Horovod, mpi4py, and PyTorch and JAX, whose ranks get ``torchrun``'s variables.

    Args:
        processes_per_host: Number of ranks on a host; by default the number of its GPUs, or 1.
        custom_mpi_options: Options of ``mpirun`` in one string, split as a shell does.
        instance_groups: Names of the instance groups that form the cluster; needed if the job has more than one.
        bind_gpus: Whether each rank sees only the GPU of its local rank (``CUDA_VISIBLE_DEVICES``), for scripts that do
            not choose one. It must be off for scripts that choose a GPU by their local rank, as Horovod's examples do.

    Raises:
        SpecError: For values that ``mpirun`` cannot have.
    """

    processes_per_host: int | None = None
    custom_mpi_options: str = ""
    instance_groups: tuple[str, ...] = ()
    bind_gpus: bool = False

    def __post_init__(self) -> None:
        set_truth(self, "bind_gpus", "MPI bind_gpus", _ARGUMENT)
        set_whole(self, "processes_per_host", "MPI processes_per_host", 1, optional=True)
        if not isinstance(self.custom_mpi_options, str):
            raise _error(f"MPI custom_mpi_options is {self.custom_mpi_options!r}", "give one string of mpirun options")


Distribution = Union[ParameterServer, MultiWorkerMirrored, MPI]


class Kind(NamedTuple):
    """A kind of distribution: its class, the hyperparameter that enables it, and that of each option."""

    make: type[Distribution]
    switch: str
    options: Mapping[str, str]


#: By the key in the SageMaker SDK's dict. The options are in the order of the hyperparameters.
KINDS: dict[str, Kind] = {
    "parameter_server": Kind(
        ParameterServer,
        contract.PARAMETER_SERVER_ENABLED,
        {
            "coordinator": contract.PARAMETER_SERVER_COORDINATOR,
            "chief": contract.PARAMETER_SERVER_CHIEF,
            "evaluator": contract.PARAMETER_SERVER_EVALUATOR,
            "ps": contract.PARAMETER_SERVER_HOSTS,
            "roles": contract.PARAMETER_SERVER_ROLES,
        },
    ),
    "multi_worker_mirrored_strategy": Kind(
        MultiWorkerMirrored,
        contract.MULTI_WORKER_MIRRORED_ENABLED,
        {"evaluator": contract.MULTI_WORKER_MIRRORED_EVALUATOR, "roles": contract.MULTI_WORKER_MIRRORED_ROLES},
    ),
    "mpi": Kind(
        MPI,
        contract.MPI_ENABLED,
        {
            "processes_per_host": contract.MPI_PROCESSES_PER_HOST,
            "custom_mpi_options": contract.MPI_CUSTOM_OPTIONS,
            "bind_gpus": contract.MPI_BIND_GPUS,
        },
    ),
}
#: Keys of the dict, by the names on the command line and in tests.
NAMES = {
    "mpi": "mpi",
    "parameter-server": "parameter_server",
    "multi-worker-mirrored": "multi_worker_mirrored_strategy",
    "multi-worker-mirrored-strategy": "multi_worker_mirrored_strategy",
    "horovod": "mpi",
}
_TORCHRUN = "torch_distributed"
#: Distributions of the SageMaker SDK that are not supported, and what to do instead.
UNSUPPORTED = {
    "smdistributed": "use {'mpi': {'enabled': True}} with Horovod: AWS's newest image with this library has "
    "TensorFlow 2.11",
    _TORCHRUN: "use {'mpi': {'enabled': True}}: torch.distributed.init_process_group() finds its variables there",
    **dict.fromkeys(("pytorchddp", "pytorchxla"), "it is for PyTorch: use the SageMaker SDK's estimators"),
}


def parse_distribution(value: object) -> Distribution | None:
    """Return the distribution for an argument: a value of this module, the SageMaker SDK's dict, or ``None``.

    Raises `SpecError` for unknown keys, two enabled kinds and wrong values. The dict is not changed.
    """
    if value is None or isinstance(value, (ParameterServer, MultiWorkerMirrored, MPI)):
        return value
    if not isinstance(value, Mapping):
        step = "give ParameterServer(), MultiWorkerMirrored(), MPI() or a dict such as {'mpi': {'enabled': True}}"
        raise invalid("distribution", f"is {value!r}", step)
    groups = _group_names(value.get("instance_groups", ()))
    enabled = {}
    for kind, options in value.items():
        if kind == "instance_groups" or (kind in UNSUPPORTED and _is_disabled(options)):
            continue
        _validate_kind(kind)
        parsed = _parse_kind(kind, options, groups)
        if parsed is not None:
            enabled[kind] = parsed
    if len(enabled) > 1:
        raise invalid(
            "distribution", f"enables {' and '.join(map(repr, enabled))}", "a job has one, disable the others"
        )
    if groups and not enabled:
        raise invalid("distribution", "names instance_groups but enables nothing to run on them", "enable a kind")
    return next(iter(enabled.values()), None)


def _validate_kind(kind: str) -> None:
    """Raise `SpecError` for a key of the dict that is not one of `KINDS`."""
    if kind in UNSUPPORTED:
        reason = "starts torchrun on each host" if kind == _TORCHRUN else "needs AWS's own library of AWS's images"
        raise _error(f"distribution[{kind!r}] {reason}, which is not supported", UNSUPPORTED[kind])
    if kind not in KINDS and (known := NAMES.get(str(kind).replace("_", "-"))):
        raise _error(f"distribution has no key {kind!r}", f"write {{{known!r}: {{'enabled': True}}}}")
    validate_keys("distribution", [kind], [*KINDS, "instance_groups"], argument="distribution")


def _is_disabled(options: object) -> bool:
    """Return whether an unsupported kind is disabled, as a whole or in each of its libraries."""
    if not isinstance(options, Mapping):
        return False
    parts = [options] if "enabled" in options else list(options.values())
    return bool(parts) and all(isinstance(option, Mapping) and not option.get("enabled", True) for option in parts)


def _parse_kind(kind: str, options: object, groups: tuple[str, ...]) -> Distribution | None:
    make, _, known = KINDS[kind]
    if not isinstance(options, Mapping):
        raise _error(f"distribution[{kind!r}] is {options!r}", "give a dict such as {'enabled': True}")
    for key in options:
        if key not in known and (others := [other for other, row in KINDS.items() if key in row.options]):
            raise _error(
                f"distribution[{kind!r}] has no key {key!r}, an option of {' and '.join(others)}", "leave it out"
            )
    validate_keys(f"distribution[{kind!r}]", options, ["enabled", *known], argument="distribution")
    if "enabled" not in options:  # for v2 it is off then, which is not meant
        raise _error(f"distribution[{kind!r}] has no 'enabled'", "give it True or False")
    switch = truth_value(f"distribution[{kind!r}]['enabled']", options["enabled"], _ARGUMENT)
    arguments: dict[str, Any] = {key: options[key] for key in known if key in options}
    parsed = make(**arguments, instance_groups=groups)
    return parsed if switch else None


def _group_names(groups: object, what: str = "distribution['instance_groups']") -> tuple[str, ...]:
    if isinstance(groups, str) or not hasattr(groups, "__iter__"):
        raise _error(f"{what} is {groups!r}", "give a list of instance groups or their names")
    return tuple(str(getattr(group, "instance_group_name", group)) for group in groups)


def _validate_roles(value: ParameterServer | MultiWorkerMirrored, known: list[str], needed: tuple[str, ...]) -> None:
    """Validate a value's evaluator and roles; store the roles as names of groups, in TensorFlow's order."""
    kind = type(value).__name__
    set_truth(value, "evaluator", f"{kind} evaluator", _ARGUMENT)
    roles = _named_roles(f"{kind} roles", value.roles or {}, known)
    object.__setattr__(value, "roles", {role: roles[role] for role in ROLES if role in roles})
    if not roles:
        return
    if value.instance_groups:
        raise _error(f"{kind} roles and instance_groups both say which groups train together", "keep roles")
    if value.evaluator:
        raise _error(f"{kind} evaluator=True and roles both say where the evaluator is", "give it a group in roles")
    for role in needed:
        if role not in roles:
            raise _error(f"{kind} roles names no {role!r}, which this cluster needs", "give it a group")


def _named_roles(what: str, roles: object, known: list[str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(roles, Mapping):
        raise _error(f"{what} is {roles!r}", "give a dict of roles and groups, such as {'chief': 'one', 'ps': 'two'}")
    named: dict[str, tuple[str, ...]] = {}
    role_of: dict[str, str] = {}
    for role, groups in roles.items():
        if role not in known:
            raise _error(f"{what} has no role {role!r}", did_you_mean(str(role), known))
        is_one = isinstance(groups, str) or hasattr(groups, "instance_group_name")
        named[role] = _group_names((groups,) if is_one else groups, f"{what}[{role!r}]")
        if not named[role]:
            raise _error(f"{what}[{role!r}] is {groups!r}", "give an instance group, its name, or a list of them")
        for group in named[role]:
            if group in role_of:
                raise _error(f"{what} names {group!r} twice, for {role_of[group]!r} and {role!r}", "give it one role")
            role_of[group] = role
    return named
