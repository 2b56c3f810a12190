"""What a job's steps on the nodes of a cluster are given: addresses, ports, variables and a command."""

import contextvars
import ipaddress
import os
import socket

import pytest
from fakes import slurm_programs
from fakes.local_jobs import request_for

from scriptmode._core.request.parse import parse_request
from scriptmode.errors import DataError
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._store.state import starting_state
from scriptmode_local._system.forked_tasks import Tasks
from scriptmode_local._system.ports import DEFAULT_EPHEMERAL, LOWEST, ROLES
from scriptmode_slurm._engine import addresses, steps
from scriptmode_slurm._engine.addresses import Interface
from scriptmode_slurm._engine.fleet import SlurmFleet
from scriptmode_slurm._engine.settings import SlurmSettings

ETHERNET, FAST = Interface("eth0", "192.0.2.7"), Interface("ib0", "10.1.2.7")
FAST_6 = Interface("ib0", "fd00::7")
#: The interface of a container engine, whose address every node may have.
BRIDGE = Interface("docker0", "172.17.0.1")
MACHINE = [FAST_6, ETHERNET, FAST, BRIDGE]
#: What a batch step of Slurm 22.05 has, some of it.
OF_THE_BATCH_STEP = {
    "SLURM_CONF": "/etc/slurm/slurm.conf", "SLURM_JOB_NUM_NODES": "4", "SLURM_JOB_ID": "17", "SLURM_HET_SIZE": "2",
    "SLURM_JOB_ID_HET_GROUP_1": "18", "SLURM_MEM_PER_CPU": "4000", "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_EXPORT_ENV": "NONE", "SBATCH_PARTITION": "gpu", "CUDA_VISIBLE_DEVICES": "0,1", "PATH": "/bin",
}  # fmt: skip


def test_a_step_is_told_its_job_and_no_default_of_an_option():
    left_out = ("SLURM_MEM_PER_CPU", "SLURM_NTASKS_PER_NODE", "SLURM_EXPORT_ENV", "SBATCH_PARTITION")
    kept = {name: value for name, value in OF_THE_BATCH_STEP.items() if name not in left_out}
    assert steps.step_environment(OF_THE_BATCH_STEP) == kept


@pytest.mark.parametrize(
    ("wanted", "address", "interface"),
    [
        ("ib0", "10.1.2.7", "ib0"), ("fd00::/8", "fd00::7", "ib0"), ("192.0.2.7/32", "192.0.2.7", "eth0"),
        ("10.2.0.0/16", "", ""),
    ],
)  # fmt: skip
def test_the_fast_network_is_named_by_its_interface_or_its_numbers(wanted, address, interface):
    assert addresses.choose_address(wanted, MACHINE) == address
    assert addresses.find_interface(address, MACHINE) == interface


def test_this_machine_s_addresses_can_be_bound_and_are_not_loopback():
    found = addresses.list_interfaces()
    names = {name for _, name in socket.if_nameindex()}
    assert {each.name for each in found} <= names - {"lo"}
    for each in found:
        family = socket.AF_INET6 if ":" in each.address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as server:
            server.bind((each.address, 0))


def test_an_address_that_is_a_name_is_resolved_or_refused_with_the_option_that_replaces_it():
    assert ipaddress.ip_address(addresses.resolve_address("node1", "localhost")).is_loopback
    assert addresses.resolve_address("node1", "10.1.2.3") == "10.1.2.3"
    with pytest.raises(DataError, match=r"node1 has the address 'no such.invalid'.*Slurm\(interface=\.\.\.\)"):
        addresses.resolve_address("node1", "no such.invalid")


INHERITED = {
    "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "node[1-2]", "SLURMD_NODENAME": "node1", "SLURM_JOB_PARTITION": "gpu",
}  # fmt: skip
HOSTS = ["algo-1", "algo-2"]


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Two nodes, of which one knows itself by a loopback address; what ``srun`` is asked is in ``srun.log``."""
    known = addresses.list_interfaces()
    if not known:
        pytest.skip("this machine has no network")
    programs = slurm_programs.Programs(tmp_path)
    answer = f"printf 'NodeName=%s NodeAddr=%s State=IDLE\\n' node1 127.0.1.1 node2 {known[0].address}"
    hangs = f"[ -e {tmp_path}/hangs ] && rm {tmp_path}/hangs && exec sleep 600"
    programs.add("scontrol", f'{hangs}\n[ "$2 $3" = "hostnames node[1-2]" ] && exec echo node1 node2\n{answer}')
    programs.add("srun", f'echo "$1 $4" >>{tmp_path}/srun.log')
    monkeypatch.setattr(steps, "_EARLY_SECONDS", 2.0)
    for variable, value in {**INHERITED, "PATH": f"{tmp_path}:{os.environ['PATH']}"}.items():
        monkeypatch.setenv(variable, value)
    return known


@pytest.fixture
def folder(tmp_path):
    """The folder of a job that cannot have an agent: it has no lock."""
    folder = JobFolder(tmp_path / "data" / "jobs" / "job")
    folder.channels.mkdir(parents=True)
    return folder


def create_fleet(folder):
    request = parse_request(request_for("job", hosts=2))
    job = Job(request, "arn", "us-east-1", "python", 1.0, engine=SlurmSettings().to_json())
    return SlurmFleet(folder, job, Tasks(), dict(os.environ))


@pytest.mark.parametrize(
    ("status", "scontrol", "hosts", "early"),
    [("Starting", "answers", HOSTS, HOSTS), ("Starting", "answers", HOSTS[:1], HOSTS[:1]),
     ("Starting", "hangs", HOSTS, []), ("Stopped", "answers", HOSTS, [])],
)  # fmt: skip
def test_each_host_starts_once_early_or_by_the_agent(tmp_path, nodes, folder, *, status, scontrol, hosts, early):
    (tmp_path / scontrol).touch()
    folder.write_state(starting_state("job", "arn", 1.0).with_status(status, 2.0))
    context = contextvars.copy_context()
    assert context.run(steps.run_batch_step, str(folder.path), *hosts) == 1
    assert [*context.run(steps.STARTED.get)] == early
    for agent in context.run(create_fleet(folder).start_agents, None):
        agent.process.wait()
    asked = sorted((tmp_path / "srun.log").read_text().splitlines())
    assert asked == ["--job-name=algo-1 --nodelist=node1", "--job-name=algo-2 --nodelist=node2"]


def test_a_node_that_knows_itself_by_a_loopback_address_has_another_one_for_the_others(nodes, folder):
    """Debian's /etc/hosts: the own name is 127.0.1.1."""
    fleet = create_fleet(folder)
    for agent in fleet.start_agents(None):
        agent.process.wait()
    assert folder.read_places()["algo-2"] == "Slurm job 17, partition gpu, node2"
    for sandbox in fleet.sandboxes.values():
        assert not addresses.is_loopback(sandbox.read_addresses()[sandbox.host])
    assert addresses.find_interface(fleet.sandboxes["algo-1"].read_addresses()["algo-1"], nodes)


def test_jobs_of_one_node_have_ports_of_their_own_below_the_ephemeral_range():
    blocks = [addresses.port_block(number) for number in range(90_000, 92_500)]
    ports = [port for block in blocks for port in block.values()]
    assert len(set(ports)) == len(ports)
    assert min(ports) >= LOWEST
    assert max(ports) < DEFAULT_EPHEMERAL
    assert set(blocks[0]) == set(ROLES)
