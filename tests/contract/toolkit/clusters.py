"""Jobs of several hosts: what each host is told of the cluster, and what the first one runs ``mpirun`` with."""

from contract.toolkit.case import Case, encoded, only_host
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
NOT_OURS = (
    "distributed_dataparallel", "pytorch_ddp", "pytorch_xla_multi_worker", "torch_distributed",
)  # fmt: skip


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


def ranks(name, count=2, interface="eth0", instance="ml.p3.16xlarge", **hyperparameters):
    """A case of the first of ``count`` hosts."""
    hosts = [f"algo-{number}" for number in range(1, count + 1)]
    resources = only_host(hosts=hosts, network_interface_name=interface, current_instance_type=instance)
    return Case(f"mpirun: {name}", encoded(sagemaker_mpi_enabled=True, epochs=2, **hyperparameters), resources)


def custom(options):
    return ranks(f"options {options!r}", sagemaker_mpi_custom_mpi_options=options)


def per_host(count):
    return {"sagemaker_mpi_num_of_processes_per_host": count}


MPIRUN = [
    ranks("one host", 1),
    ranks("two hosts"),
    ranks("three hosts, two ranks each", 3, **per_host(2)),
    ranks("one host, eight ranks", 1, **per_host(8)),
    ranks("another interface", interface="ethwe"),
    ranks("number of ranks", sagemaker_mpi_num_processes=3, **per_host(4)),
    *(ranks(f"instance {kind}", instance=kind) for kind in (
        "ml.c5.xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p5en.48xlarge", "ml.g4dn.8xlarge", "ml.trn1.32xlarge",
        "ml.p6-b200.48xlarge",
    )),
    custom("-x HOROVOD_TIMELINE=/tmp/timeline.json -verbose"),
    custom("--NCCL_DEBUG WARN -x NCCL_MIN_NRINGS=8"),
    custom("--NCCL_DEBUG=INFO --mca pml ucx --mca btl_tcp_if_include lo"),
    custom("-bind-to socket -map-by node --report-bindings"),
    custom('-x GREETING="two words"'),
]  # fmt: skip
#: Accelerators of the machine, in one case of two hosts each.
ACCELERATORS = {"4 GPUs": (4, 0), "2 Neuron cores": (0, 2), "4 GPUs, 2 Neuron cores": (4, 2)}
MPIRUN += [ranks(f"machine with {name}") for name in ACCELERATORS]
MPIRUN += [
    Case(f"mpirun: variables {', '.join(variables)}", encoded(sagemaker_mpi_enabled=True), variables=variables)
    for variables in (
        {"LD_LIBRARY_PATH": "/opt/lib"},
        {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"},
    )
]
MPIRUN += [
    Case(
        "mpirun: one group of two",
        encoded(sagemaker_mpi_enabled=True, **IN_GROUPS),
        {**MIXED, "current_host": "algo-2", "current_group_name": "trainers"},
    )
]
