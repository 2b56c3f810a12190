"""What a job's steps on the nodes of a cluster are given: addresses, ports, variables and a command."""

import ipaddress
import os
import socket
import subprocess
import sys

import pytest
from fakes import slurm_programs
from fakes.local_jobs import request_for
from fakes.processes import until

from scriptmode._core.request.parse import parse_request
from scriptmode.errors import DataError
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder
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


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Two nodes, of which one knows itself by a loopback address; what ``srun`` is asked is in ``srun.log``."""
    known = addresses.list_interfaces()
    if not known:
        pytest.skip("this machine has no network")
    programs = slurm_programs.Programs(tmp_path)
    answer = f"printf 'NodeName=%s NodeAddr=%s State=IDLE\\n' node1 127.0.1.1 node2 {known[0].address}"
    programs.add("scontrol", f'[ "$2 $3" = "hostnames node[1-2]" ] && exec echo node1 node2\n{answer}')
    programs.add("srun", f'echo "$*" >>{tmp_path}/srun.log')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return known


def test_the_agents_of_hosts_start_before_that_of_the_job(tmp_path, nodes):
    argv = (sys.executable, "-m", "scriptmode_slurm._engine", tmp_path / "absent", "algo-1", "algo-2")
    done = subprocess.run(argv, env={**os.environ, **INHERITED}, capture_output=True, text=True, check=False)
    assert "the agent of training job absent cannot start" in done.stderr
    log = tmp_path / "srun.log"
    until(lambda: log.exists() and log.read_text().count("\n") == len(("node1", "node2")))
    words = sorted(line.split() for line in log.read_text().splitlines())
    assert [(step[3], step[-1]) for step in words] == [("--nodelist=node1", "algo-1"), ("--nodelist=node2", "algo-2")]


def test_a_node_that_knows_itself_by_a_loopback_address_has_another_one_for_the_others(tmp_path, nodes):
    """Debian's /etc/hosts: the own name is 127.0.1.1."""
    folder = JobFolder(tmp_path / "data" / "jobs" / "job")
    folder.channels.mkdir(parents=True)
    job = Job(
        parse_request(request_for("job", hosts=2)), "arn", "us-east-1", "python", 1.0, engine=SlurmSettings().to_json()
    )
    fleet = SlurmFleet(folder, job, Tasks(), {**os.environ, **INHERITED})
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
