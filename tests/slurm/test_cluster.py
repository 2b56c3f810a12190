"""The cluster is one: two hosts, accounting, preemption, devices; and nothing is left of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.processes import until
from slurm import configuration
from slurm.cluster import sweep

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_step_runs_on_two_hosts(idle_cluster):
    steps = idle_cluster.run("srun", "--nodes=2", "--ntasks-per-node=1", "hostname")
    assert sorted(steps.stdout.split()) == ["node1", "node2"]


def test_nodes_share_folders_and_have_a_tmp_of_their_own(idle_cluster, tmp_path):
    script = f"mkdir {tmp_path}/$(hostname) /tmp/local && ls {tmp_path} /tmp"
    listed = [
        idle_cluster.run("srun", f"--nodelist={node}", "sh", "-ec", script, cwd=tmp_path).stdout
        for node in configuration.NODES
    ]
    assert [node.is_dir() for node in map(tmp_path.joinpath, configuration.NODES)] == [True, True]
    assert "node1" in listed[1]
    assert not Path("/tmp/local").exists()


def test_each_node_was_booted_by_itself(idle_cluster):
    shown = idle_cluster.run("srun", "--nodes=2", "--ntasks-per-node=1", "cat", "/proc/sys/kernel/random/boot_id")
    here = Path("/proc/sys/kernel/random/boot_id").read_text()
    assert len({*shown.stdout.split(), here.strip()}) == 3


def test_accounting_knows_how_a_job_ended(idle_cluster):
    number = idle_cluster.submit("exit 3")
    idle_cluster.reaches(number, "FAILED")
    until(lambda: idle_cluster.account(number, "State", "ExitCode") == ["FAILED", "3:0"])


def test_gpus_are_seen_by_their_numbers(idle_cluster):
    shown = idle_cluster.run("srun", "--nodes=2", "--gres=gpu:2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert shown.stdout == "0,1\n0,1\n"
    refused = idle_cluster.run("sbatch", "--gres=gpu:3", "--wrap=true", check=False)
    assert "Requested node configuration is not available" in refused.stderr


def test_an_urgent_job_has_another_one_requeued(idle_cluster):
    number = idle_cluster.submit("sleep 600")
    idle_cluster.reaches(number, "RUNNING")
    urgent = idle_cluster.preempt()
    idle_cluster.reaches(urgent, "RUNNING", seconds=120)
    assert idle_cluster.job(number)["Restarts"] == "1"
    idle_cluster.run("scancel", urgent)
    idle_cluster.start_now(number)
    idle_cluster.reaches(number, "RUNNING")


def test_a_node_set_down_and_a_restarted_controller_come_back(idle_cluster):
    number = idle_cluster.submit("sleep 600", "--no-requeue", "--nodelist=node1")
    other = idle_cluster.submit("sleep 600", "--nodelist=node2")
    idle_cluster.reaches(number, "RUNNING")
    idle_cluster.reaches(other, "RUNNING")
    idle_cluster.restart_slurmctld()
    idle_cluster.set_node("node1", "DOWN")
    idle_cluster.reaches(number, "NODE_FAIL")
    assert idle_cluster.job(other)["JobState"] == "RUNNING"
    idle_cluster.lose("node1")
    assert idle_cluster.processes("node1") == [idle_cluster.machines.holders["node1"]]
    idle_cluster.restore("node1")
    assert idle_cluster.run("srun", "--nodelist=node1", "hostname").stdout == "node1\n"


_HELD = """
from slurm.cluster import Cluster
cluster = Cluster()
print(cluster.folder, cluster.machines.number, flush=True)
cluster.submit("sleep 600")
import time; time.sleep(600)
"""


def test_nothing_but_a_folder_is_left_of_a_killed_test_run(cluster):
    """A second cluster stands beside the first, until its process is killed."""
    program = [sys.executable, "-c", _HELD]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as held:
        folder, number = held.stdout.readline().split()
        interface = Path(f"/sys/class/net/slurm{number}")
        assert interface.exists()
        held.send_signal(signal.SIGKILL)
    until(lambda: not interface.exists())
    until(lambda: not [pid for pid in Path("/proc").glob("[0-9]*") if folder in _words(pid)])
    until(lambda: sweep() or not Path(folder).exists())  # another process may do that at the same time
    assert cluster.run("sinfo").returncode == 0


def _words(process):
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
