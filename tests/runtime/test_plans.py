"""What each host of each layout would run, also asked in one process that has no host's folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.host_folders import write_host
from processes.launchers import ENTRYPOINTS

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._host.machine import Machine
from scriptmode_runtime._host.programs import Mpirun, find_mpirun
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._launch.preview import host_environment, roles
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime._values.errors import ClusterError, ConfigurationError

BETWEEN_GRAPH = {"sagemaker_parameter_server_enabled": True}
COORDINATOR = {**BETWEEN_GRAPH, "sagemaker_parameter_server_coordinator": True}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
MPI = {"sagemaker_mpi_enabled": True}
MPI_ENDS = ["mpirun_ended", "daemons_ended", "trainers_ended"]
SCRATCH = "/tmp/scriptmode"


def plan(  # one parameter for each thing a plan depends on
    tmp_path, count=1, this=1, major=5, gpus=0, *, cluster=None, **hyperparameters
):
    hosts = [f"algo-{number + 1}" for number in range(count)]
    hyperparameters["sagemaker_program"] = "train.py"
    base = write_host(tmp_path / "ml", hosts[this - 1], hosts, {"train.py": ""}, cluster, **hyperparameters)
    variables = {"PATH": "/bin"}
    mpirun = Mpirun("/opt/bin/mpirun", major) if major else None
    here = environment.read(str(base), variables)
    here = here._replace(machine=Machine(4, gpus, 0), mpirun=mpirun)
    return plan_for(here, user_code.command(here))


def config(spec):
    return json.loads(spec.env["TF_CONFIG"]) if spec and "TF_CONFIG" in spec.env else None


def events(waits):
    return [wait.event for wait in waits]


def test_a_single_host_runs_the_script_in_its_code_folder(tmp_path):
    one = plan(tmp_path, epochs=3)
    assert one.main.argv == (sys.executable, "train.py", "--epochs", "3")
    assert one.main.cwd == str(tmp_path / "ml/code")
    code, fallback = one.main.env["PYTHONPATH"].split(os.pathsep)
    assert code == str(tmp_path / "ml/code")
    assert (Path(fallback) / "sagemaker_tensorflow").is_dir()
    assert one.main.env["PYTHONUNBUFFERED"] == "1"
    assert (one.services, one.before, one.after) == ((), (), ())


@pytest.mark.parametrize(
    ("count", "this", "role", "index"),
    [(2, 1, "master", 0), (2, 2, "worker", 0), (3, 1, "master", 0), (3, 2, "worker", 0), (3, 3, "worker", 1)],
)
def test_between_graph_every_host_trains_and_serves(tmp_path, count, this, role, index):
    one = plan(tmp_path, count, this, **BETWEEN_GRAPH)
    cluster = {
        "master": ["algo-1:2222"],
        "worker": [f"algo-{n}:2222" for n in range(2, count + 1)],
        "ps": [f"algo-{n}:2223" for n in range(1, count + 1)],
    }
    assert config(one.main) == {"cluster": cluster, "environment": "cloud", "task": {"type": role, "index": index}}
    assert one.main.name == role
    (server,) = one.services
    assert config(server) == {"cluster": cluster, "environment": "cloud", "task": {"type": "ps", "index": this - 1}}
    assert server.env["CUDA_VISIBLE_DEVICES"] == "-1"
    assert events(one.after) == ["trainers_ended"]


@pytest.mark.parametrize(("count", "this"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)])
def test_a_coordinator_has_a_worker_and_a_ps_on_every_host(tmp_path, count, this):
    one = plan(tmp_path, count, this, **COORDINATOR)
    hosts = range(1, count + 1)
    cluster = {
        "chief": ["algo-1:2221"],
        "worker": [f"algo-{n}:2222" for n in hosts],
        "ps": [f"algo-{n}:2223" for n in hosts],
    }
    tasks = [config(spec)["task"] for spec in one.services]
    assert tasks == [{"type": "worker", "index": this - 1}, {"type": "ps", "index": this - 1}]
    assert all(config(spec)["cluster"] == cluster for spec in one.services)
    assert config(one.main) == (
        {"cluster": cluster, "environment": "cloud", "task": {"type": "chief", "index": 0}} if this == 1 else None
    )
    everyone = [*one.services, *([one.main] if one.main else [])]
    assert all(spec.env["GRPC_FAIL_FAST"] == "use_caller" for spec in everyone)
    assert [spec.env.get("CUDA_VISIBLE_DEVICES") for spec in one.services] == [None, "-1"]
    assert events(one.after) == (["trainers_ended"] if count > 1 else [])


@pytest.mark.parametrize(("layout", "first"), [(BETWEEN_GRAPH, "master"), (COORDINATOR, "chief")])
def test_the_last_hosts_are_parameter_servers_alone_where_the_job_says_how_many(tmp_path, layout, first):
    hosts = [plan(tmp_path / str(this), 3, this, **layout, sagemaker_parameter_server_hosts=1) for this in (1, 2, 3)]
    tasks = [[config(spec)["task"]["type"] for spec in (*one.trainers, *one.services)] for one in hosts]
    workers = ["algo-2:2222"] if first == "master" else ["algo-1:2222", "algo-2:2222"]
    assert tasks == [["master"] if first == "master" else ["chief", "worker"], ["worker"], ["ps"]]
    cluster = config(hosts[2].services[0])["cluster"]
    assert (cluster["worker"], cluster["ps"], next(iter(cluster))) == (workers, ["algo-3:2223"], first)
    for count in (0, 3, "two", True):
        with pytest.raises(ConfigurationError, match="at least one host is a parameter server, and one trains"):
            plan(tmp_path / f"of {count}", 3, **layout, sagemaker_parameter_server_hosts=count)


ADDRESSES = {
    "algo-1": {"address": "127.0.0.1", "base_dir": "/a", "ports": {"mirrored": 5001}},
    "algo-2": {"address": "::1", "base_dir": "/b", "ports": {"mirrored": 5002}},
}


@pytest.mark.parametrize(
    ("count", "this", "cluster", "workers"),
    [
        (1, 1, None, ["algo-1:8890"]),
        (2, 2, None, ["algo-1:8890", "algo-2:8890"]),
        (2, 2, {"hosts": ADDRESSES}, ["127.0.0.1:5001", "[::1]:5002"]),
    ],
    ids=["one host", "two hosts", "addresses and ports of the platform"],
)
def test_mirrored_every_host_is_a_worker(tmp_path, count, this, cluster, workers):
    one = plan(tmp_path, count, this, cluster=cluster, **MIRRORED)
    task = {"type": "worker", "index": this - 1}
    assert config(one.main) == {"cluster": {"worker": workers}, "environment": "cloud", "task": task}


@pytest.mark.parametrize(
    ("count", "gpus", "asked", "ranks"),
    [
        pytest.param(1, 4, None, 4, id="one host, its GPUs"),
        pytest.param(2, 8, None, 16, id="two hosts, their GPUs"),
        pytest.param(3, 0, 2, 6, id="three hosts, as asked"),
    ],
)
def test_mpirun_starts_the_ranks_of_all_hosts(tmp_path, count, gpus, asked, ranks):
    asked = {} if asked is None else {"sagemaker_mpi_num_of_processes_per_host": asked}
    one = plan(tmp_path, count, gpus=gpus, epochs=1, **MPI, **asked)
    argv = one.main.argv
    assert argv[0] == "/opt/bin/mpirun"
    assert argv[argv.index("-np") + 1] == str(ranks)
    if count == 1:
        assert argv[argv.index("--host") + 1] == f"localhost:{ranks}"
    else:
        # The first host is known to mpirun by the machine's own name only.
        names = [os.uname().nodename, *(f"algo-{number + 1}" for number in range(1, count))]
        lines = [f"{name} slots={ranks // count}" for name in names]
        assert files(one)[argv[argv.index("--hostfile") + 1]].splitlines() == lines
    assert argv[-3:] == (sys.executable, "-m", "scriptmode_runtime.rank")
    assert one.main.stop == "ranks"
    assert (events(one.before), events(one.after)) == ((["hosts_ready"], MPI_ENDS) if count > 1 else ([], []))


def files(one):
    return {file.path: file.content for file in one.files}


@pytest.mark.parametrize(("major", "parameter"), [(4, "plm_rsh_agent"), (5, "plm_ssh_agent")])
def test_mpirun_asks_the_launcher_for_its_daemons_unless_the_job_names_its_own_agent(tmp_path, major, parameter):
    one = plan(tmp_path / "1", 2, major=major, **MPI)
    argv = one.main.argv
    agent = argv[argv.index(parameter) + 1]
    assert agent.split()[0] == agent
    assert "rsh.py" in files(one)[agent]
    assert "--leave-session-attached" in argv
    options = f"-mca {parameter} /bin/mine"
    own = plan(tmp_path / "2", 2, major=major, sagemaker_mpi_custom_mpi_options=options, **MPI).main.argv
    assert [word for word in own if word.startswith("plm_")] == [parameter]
    member = plan(tmp_path / "3", 2, 2, major=None, **MPI)
    assert (member.main, events(member.before), events(member.after)) == (None, ["hosts_ready"], MPI_ENDS)


def pairs(argv, option):
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]


def test_mpirun_has_the_options_users_rely_on(tmp_path):
    argv = plan(tmp_path / "1", 2, major=4, sagemaker_mpi_num_processes=3, **MPI).main.argv
    assert pairs(argv, "-np") == ["3"]
    parameters = {argv[at + 1]: argv[at + 2] for at, word in enumerate(argv) if word == "--mca"}
    assert parameters == {
        "btl_tcp_if_include": "eth0", "oob_tcp_if_include": "eth0", "pml": "ob1", "btl": "^openib",
        "orte_abort_on_non_zero_status": "1", "orte_keep_fqdn_hostnames": "1",
        "btl_vader_single_copy_mechanism": "none", "plm_rsh_agent": f"{SCRATCH}/rsh", "plm_rsh_no_tree_spawn": "1",
    }  # fmt: skip
    assert {"--tag-output", "--allow-run-as-root", "--oversubscribe"} <= set(argv)
    assert pairs(argv, "--bind-to") == ["none"]
    assert pairs(argv, "--map-by") == ["slot"]
    exported = pairs(argv, "-x")
    assert {"NCCL_SOCKET_IFNAME=eth0", "NCCL_DEBUG=INFO", "PATH", "SM_HOSTS", "SM_HPS"} <= set(exported)


@pytest.mark.parametrize(
    ("instance_type", "fabric"),
    [
        ("ml.c5.xlarge", []),
        ("ml.p3dn.24xlarge", ["FI_PROVIDER=efa", "NCCL_PROTO=simple"]),
        ("ml.p4d.24xlarge", ["FI_PROVIDER=efa", "NCCL_PROTO=simple", "FI_EFA_USE_DEVICE_RDMA=1"]),
        ("ml.g4dn.8xlarge", ["FI_PROVIDER=efa", "NCCL_PROTO=simple"]),
        ("ml.trn1.32xlarge", ["FI_PROVIDER=efa", "NCCL_PROTO=simple", "FI_EFA_USE_DEVICE_RDMA=1"]),
        ("ml.p5en.48xlarge", ["FI_PROVIDER=efa"]),
        ("ml.p6-b200.48xlarge", ["FI_PROVIDER=efa"]),
    ],
)
def test_ranks_have_variables_of_the_fabric_and_none_of_the_first_hosts_credentials(tmp_path, instance_type, fabric):
    base = write_host(tmp_path / "ml", code={"train.py": ""}, sagemaker_program="train.py", **MPI)
    here = environment.read(str(base), {"LD_LIBRARY_PATH": "/opt/lib", "AWS_SECRET_ACCESS_KEY": "secret"})
    resources = {**here.resource_config, "current_instance_type": instance_type, "network_interface_name": "ethwe"}
    here = here._replace(machine=Machine(4, 0, 2), mpirun=Mpirun("mpirun", 4), resource_config=resources)
    argv = plan_for(here, user_code.command(here)).main.argv
    exported = pairs(argv, "-x")
    assert [word for word in exported if word.startswith(("FI_", "NCCL_PROTO"))] == fabric
    assert {"LD_LIBRARY_PATH", "NCCL_SOCKET_IFNAME=ethwe"} <= set(exported)
    assert not [word for word in exported if word.startswith("AWS_")]
    # One for each Neuron core, or for each GPU.
    assert pairs(argv, "-np") == ["2"]
    both = here._replace(machine=Machine(4, 4, 2))
    assert pairs(plan_for(both, user_code.command(both)).main.argv, "-np") == ["4"]


@pytest.mark.parametrize(
    ("options", "there", "gone"),
    [
        pytest.param("-x 'A=b c'", ["-x", "A=b c"], None, id="quoted"),
        pytest.param("--NCCL_DEBUG WARN", ["-x", "NCCL_DEBUG=WARN"], "NCCL_DEBUG=INFO", id="level as a word"),
        pytest.param(
            "--NCCL_DEBUG=WARN", ["-x", "NCCL_DEBUG=WARN"], "NCCL_DEBUG=INFO", id="level behind an equals sign"
        ),
        pytest.param("-x NCCL_DEBUG=WARN", ["-x", "NCCL_DEBUG=WARN"], "NCCL_DEBUG=INFO", id="level as a variable"),
        pytest.param("-bind-to core", ["--bind-to", "core"], None, id="one dash"),
        pytest.param("-mca btl tcp,self", ["--mca", "btl", "tcp,self"], "^openib", id="parameter of ours"),
    ],
)
def test_custom_options_come_last_and_win(tmp_path, options, there, gone):
    argv = list(plan(tmp_path, sagemaker_mpi_custom_mpi_options=options, **MPI).main.argv)
    at = next(at for at in range(len(argv)) if argv[at : at + len(there)] == there)
    ours = max(at for at, word in enumerate(argv) if word == "--mca" and argv[at + 1] == "pml")
    assert ours < at < argv.index("scriptmode_runtime.rank")
    assert gone not in argv
    assert len(pairs(argv, "--bind-to")) == 1


@pytest.mark.parametrize(
    ("hyperparameters", "major", "error", "said"),
    [
        ({"sagemaker_mpi_num_of_processes_per_host": 0}, 5, ConfigurationError, "is 0; use an integer of at least 1"),
        ({"sagemaker_mpi_num_of_processes_per_host": "two"}, 5, ConfigurationError, "is 'two'"),
        ({"sagemaker_mpi_custom_mpi_options": "'open"}, 5, ConfigurationError, "cannot be split into words"),
        ({}, None, ClusterError, "install Open MPI"),
    ],
    ids=["no ranks", "not a number", "open quote", "no mpirun"],
)
def test_invalid_mpi_settings_are_errors(tmp_path, hyperparameters, major, error, said):
    with pytest.raises(error, match=said):
        plan(tmp_path, major=major, **MPI, **hyperparameters)


@pytest.mark.parametrize(("daemon", "major"), [("orted", 4), ("prted", 5)])
def test_mpirun_beside_the_interpreter_comes_before_the_path(tmp_path, daemon, major):
    for folder in ("env", "system"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mpirun").touch(mode=0o755)
    (tmp_path / "env" / daemon).touch()
    found = find_mpirun(str(tmp_path / "env/python"), str(tmp_path / "system"))
    assert found == (str(tmp_path / "env/mpirun"), major)
    assert find_mpirun("/nowhere/python", "/nowhere") is None


def test_the_plan_is_printed_as_json_and_nothing_runs(tmp_path):
    base = write_host(
        tmp_path / "ml", code={"train.py": "open('ran', 'w')"}, sagemaker_program="train.py", **COORDINATOR
    )
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = [sys.executable, "-m", "scriptmode_runtime", "--plan"]
    printed = json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
    assert set(printed) == {"main", "beside", "services", "before", "after", "files"}
    assert printed["main"]["argv"] == [sys.executable, "train.py"]
    assert {"name", "argv", "env", "cwd"} <= set(printed["main"])
    assert [service["name"] for service in printed["services"]] == ["worker", "ps"]
    assert not (base / "code" / "ran").exists()
    assert not (base / "output").exists()


FOUR = {**MPI, "sagemaker_mpi_num_of_processes_per_host": 4}
BY_NODE = {**FOUR, "sagemaker_mpi_custom_mpi_options": "-map-by node"}
CONFIG_FILES = ("hyperparameters", "inputdataconfig", "resourceconfig", "scriptmode")
ONE_MACHINE = {"hosts": {}, "single_machine": True, "isolate_requirements": True, "secret": "s" * 12}


def read(base):
    config = base / "input" / "config"
    found = {name: config / f"{name}.json" for name in CONFIG_FILES}
    return {f"input/config/{name}.json": json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def hosts_of(tmp_path, count, *, cluster=None, **hyperparameters):
    """The environment of each of ``count`` hosts, whose files are written as the platform does, and read back."""
    names = [f"algo-{number + 1}" for number in range(count)]
    hyperparameters = {"sagemaker_program": "train.py", **hyperparameters}
    for name in names:
        base = write_host(tmp_path / name, name, names, None, cluster, **hyperparameters)
        here = host_environment(str(base), read(base), {"PATH": "/bin"}, gpus=0)
        yield here._replace(source={"train.py": ""})


@pytest.mark.parametrize(
    ("count", "asks", "expected"),
    [
        (1, BETWEEN_GRAPH, ["script"]),
        (1, MPI, ["mpirun, rank 0"]),
        (3, {**FOUR, "sagemaker_mpi_num_processes": 5}, ["mpirun, ranks 0-3", "rank 4", "no rank"]),
        (2, BY_NODE, [f"{start}ranks as the job's options place them" for start in ("mpirun, ", "")]),
        (2, {**BY_NODE, "cluster": ONE_MACHINE}, ["mpirun, ranks 0-3", "ranks 4-7"]),
    ],
    ids=str,
)
def test_a_host_is_called_by_what_it_runs(tmp_path, count, asks, expected):
    assert list(map(roles, hosts_of(tmp_path, count, **asks))) == expected
