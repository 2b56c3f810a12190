"""Jobs of several hosts: what each host is told of the cluster."""

from contract.toolkit.case import Case, encoded
from contract.toolkit.settings import MIXED, WHOLE

STRATEGIES = {
    "parameter servers": {"sagemaker_parameter_server_enabled": True},
    "mirrored": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "MPI": {"sagemaker_mpi_enabled": True},
    "none": {},
    "all switched off": {
        "sagemaker_parameter_server_enabled": False,
        "sagemaker_multi_worker_mirrored_strategy_enabled": False,
        "sagemaker_mpi_enabled": False,
    },
}
IN_GROUPS = {"sagemaker_distribution_instance_groups": ["trainers"]}
IN_BOTH = {"sagemaker_distribution_instance_groups": ["trainers", "data"]}
NOT_OURS = ("distributed_dataparallel", "pytorch_ddp", "pytorch_xla_multi_worker", "torch_distributed")  # fmt: skip


#: Two switched on at once: the adapter looks at one after the other.
TWO_AT_ONCE = {
    f"{one} and {other}": {**STRATEGIES[one], **STRATEGIES[other]}
    for one, other in (("parameter servers", "MPI"), ("parameter servers", "mirrored"), ("mirrored", "MPI"))
}


def of(count, this, strategy):
    hosts = [f"algo-{number}" for number in range(1, count + 1)]
    named = f"cluster: {strategy}, host {this} of {count}"
    return Case(
        named, encoded(**{**STRATEGIES, **TWO_AT_ONCE}[strategy]), {"current_host": hosts[this - 1], "hosts": hosts}
    )


def grouped(name, host, group, **hyperparameters):
    resources = {**MIXED, "current_host": host, "current_group_name": group}
    return Case(f"cluster: {name}, {host}", encoded(**hyperparameters), resources)


CLUSTERS = [
    *(of(count, this, strategy) for strategy in STRATEGIES for count in (1, 2, 3) for this in range(1, count + 1)),
    *(of(count, this, strategy) for strategy in TWO_AT_ONCE for count in (1, 2) for this in range(1, count + 1)),
    *(
        grouped(f"{strategy}, one group of two", host, group, **IN_GROUPS, **STRATEGIES[strategy])
        for strategy in ("mirrored", "MPI", "parameter servers")
        for host, group in (("algo-2", "trainers"), ("algo-3", "trainers"), ("algo-1", "data"))
    ),
    *(
        grouped(f"{strategy}, both groups", host, group, **IN_BOTH, **STRATEGIES[strategy])
        for strategy in ("mirrored", "MPI")
        for host, group in (("algo-2", "trainers"), ("algo-3", "trainers"), ("algo-1", "data"))
    ),
    grouped("mirrored, groups not named", "algo-3", "trainers", **STRATEGIES["mirrored"]),
    Case("cluster: mirrored, one group", encoded(**STRATEGIES["mirrored"]), {**WHOLE, "current_host": "algo-3"}),
    *(Case(f"cluster: {name}", encoded(**{f"sagemaker_{name}_enabled": True})) for name in NOT_OURS),
]
