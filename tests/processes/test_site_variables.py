"""Variables of a site, as a shell or a batch system sets them, do not keep the hosts of a job apart."""

import json
import os

import pytest
from fakes.cluster_scripts import LAYOUTS, MPI, compute_together

PRINTS = "import json, os; print('has', json.dumps(dict(os.environ)), flush=True)"
#: Nothing listens there.
PROXY = "http://127.0.0.1:9"
#: What reaches a script: nothing of the shell's value, the value, or the value and the hosts of the cluster.
NEUTRALISED, HONOURED, EXTENDED = "neutralised", "honoured", "extended"
#: Each with a value with which the hosts would not find each other, where one of the layouts reads it.
SITE = {
    # gRPC reads these three.
    "http_proxy": (PROXY, HONOURED), "https_proxy": (PROXY, HONOURED), "grpc_proxy": (PROXY, HONOURED),
    "HTTP_PROXY": (PROXY, HONOURED), "HTTPS_PROXY": (PROXY, HONOURED), "ALL_PROXY": (PROXY, HONOURED),
    "GRPC_PROXY_EXP": ("127.0.0.1:9", HONOURED), "no_proxy": ("algo-1,algo-2,127.0.0.0/8", EXTENDED),
    "NO_PROXY": ("site.example", EXTENDED), "no_grpc_proxy": ("site.example", EXTENDED),
    "GRPC_DNS_RESOLVER": ("ares", HONOURED), "GRPC_POLL_STRATEGY": ("poll", HONOURED),
    "GRPC_VERBOSITY": ("NONE", HONOURED),
    "TF_CONFIG": ('{"cluster": {"worker": ["site:1"]}, "task": {"type": "worker", "index": 0}}', NEUTRALISED),
    "MASTER_ADDR": ("site.example", NEUTRALISED), "WORLD_SIZE": ("9", NEUTRALISED),
    "OMPI_MCA_btl": ("self", NEUTRALISED), "OMPI_MCA_pml": ("ucx", NEUTRALISED),
    "OMPI_MCA_btl_tcp_if_include": ("none0", NEUTRALISED), "PRTE_MCA_plm": ("slurm", NEUTRALISED),
    "PRTE_MCA_prte_default_hostfile": ("/nonexistent", NEUTRALISED),
    "PMIX_MCA_ptl_tcp_if_include": ("none0", NEUTRALISED), "PMIX_RANK": ("9", NEUTRALISED),
    "PMI_RANK": ("9", NEUTRALISED), "PYTHONINSPECT": ("1", NEUTRALISED),
    # mpirun would start the ranks on the nodes of the shell's own job.
    "SLURM_JOB_ID": ("7", NEUTRALISED), "SLURM_JOBID": ("7", NEUTRALISED),
    "SLURM_NODELIST": ("n[1-2]", NEUTRALISED), "SLURM_JOB_NODELIST": ("n[1-2]", NEUTRALISED),
    "SLURM_TASKS_PER_NODE": ("1(x2)", NEUTRALISED), "PBS_ENVIRONMENT": ("PBS_BATCH", NEUTRALISED),
    "PBS_JOBID": ("7", NEUTRALISED), "PBS_NODEFILE": ("/nonexistent", NEUTRALISED), "LSB_JOBID": ("7", NEUTRALISED),
    "LSB_AFFINITY_HOSTFILE": ("/nonexistent", NEUTRALISED), "PE_HOSTFILE": ("/nonexistent", NEUTRALISED),
    # With Horovod's other controller, and none of its launcher's, a rank ends by SIGSEGV.
    "HOROVOD_CONTROLLER": ("gloo", NEUTRALISED), "HOROVOD_CPU_OPERATIONS": ("gloo", NEUTRALISED),
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": ("10.9.9.9", NEUTRALISED), "HOROVOD_GLOO_IFACE": ("none0", NEUTRALISED),
    "HOROVOD_RANK": ("9", HONOURED), "HOROVOD_HOSTNAME": ("site.example", HONOURED),
    "HOROVOD_FUSION_THRESHOLD": ("1048576", HONOURED), "HOROVOD_HIERARCHICAL_ALLREDUCE": ("1", HONOURED),
    # Without GPUs nothing reads it; mpirun's own default would replace it.
    "NCCL_SOCKET_IFNAME": ("none0", HONOURED), "GLOO_SOCKET_IFNAME": ("none0", HONOURED),
    "UCX_NET_DEVICES": ("none0", HONOURED), "UCX_TLS": ("rc", HONOURED), "FI_PROVIDER": ("efa", HONOURED),
}  # fmt: skip
VALUES = {name: value for name, (value, _) in SITE.items()}
MIRRORED = LAYOUTS["mirrored"][1]


@pytest.fixture
def site(monkeypatch):
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def one_cpu():
    """The processes that this thread starts have a single CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def environments(jobs, hyperparameters, **fields):
    """Return the variables of the script of each host."""
    name = jobs.start(PRINTS, hosts=2, hyperparameters=hyperparameters, max_run=60, **fields)
    jobs.completed(name)
    found = [json.loads(line.partition("has ")[2]) for line in jobs.lines(name) if "has {" in line]
    assert {variables["SM_CURRENT_HOST"] for variables in found} == {"algo-1", "algo-2"}
    return found


@pytest.mark.parametrize("layout", [MIRRORED, pytest.param(MPI, marks=pytest.mark.mpi)], ids=["mirrored", "mpi"])
def test_a_script_gets_what_the_table_says_of_each_variable(jobs, site, layout):
    for variables in environments(jobs, layout):
        for name, (value, outcome) in SITE.items():
            seen = variables.get(name, "")
            if outcome == EXTENDED:
                assert seen.startswith(f"{value},"), name
                assert {"algo-1", "algo-2", "127.0.0.1", "localhost"} <= set(seen.split(",")), name
            else:
                assert (seen == value) == (outcome == HONOURED), name


def test_what_the_job_itself_sets_is_kept(jobs):
    given = {name: value for name, value in VALUES.items() if name not in ("TF_CONFIG", "PYTHONINSPECT")}
    for variables in environments(jobs, MIRRORED, more={"Environment": given}):
        for name, value in given.items():
            seen = variables[name]
            assert seen == value or (SITE[name][1] == EXTENDED and seen.startswith(f"{value},")), name


@pytest.mark.tf
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("layout", ["coordinator", "horovod"])
def test_layouts_over_grpc_and_mpi_compute_amid_the_variables_of_a_site_with_one_cpu(jobs, site, one_cpu, layout):
    compute_together(jobs, layout)
