"""Jobs of two hosts, each on a node: what a script finds there, and how a job ends for Slurm."""

import json
import tempfile
from pathlib import Path

import pytest
from fakes.local_jobs import channel
from fakes.processes import until

from scriptmode import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SHOWS_ITS_PLACE = """
import json, os
print("place", json.dumps({
    "node": os.uname().nodename,
    "of Slurm": sorted(name for name in os.environ if name.startswith(("SLURM", "SRUN", "PMI", "SBATCH"))),
    "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
    "interface": os.environ["SM_NETWORK_INTERFACE_NAME"],
    "names": [os.popen(f"getent hosts {host}").read().split()[0] for host in ("algo-1", "algo-2")],
    "own /opt/ml": json.load(open("/opt/ml/input/config/resourceconfig.json"))["current_host"],
}))
open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w").write("model")
"""
READS_ITS_INPUTS = """
import json, os
folder = "/opt/ml/input/data/"
def read(path): return open(path).read().strip()
print("inputs", json.dumps({
    **{name: {file: read(folder + name + "/" + file) for file in sorted(os.listdir(folder + name))}
       for name in ("whole", "shard", "fast")},
    "pipe": [open(folder + f"pipe_{epoch}").read().split() for epoch in (0, 1)],
    "links": [os.path.islink(f"{folder}whole/0")],
    "mounts": sum(" fuse" in line for line in open("/proc/mounts")),
}))
"""


def shown(lines, word):
    """What each host printed as JSON after a word, in the order of the hosts."""
    found = (line.partition(f": {word} ") for line in sorted(lines))
    return [json.loads(text) for _, separator, text in found if separator]


def test_each_host_is_a_node_with_its_own_address_and_none_of_slurm_s_variables(jobs):
    name = jobs.start(SHOWS_ITS_PLACE)
    places = shown(jobs.completed(name), "place")
    addresses = [f"{jobs.cluster.machines.network}.{number}" for number in (1, 2)]
    for number, place in enumerate(places, 1):
        assert place == {
            "node": f"node{number}",
            "of Slurm": [],
            "gpus": None,
            "interface": "eth0",
            "names": addresses,
            "own /opt/ml": f"algo-{number}",
        }
    assert set(jobs.model(jobs.platform.describe(name))) == {"algo-1", "algo-2"}
    until(lambda: jobs.cluster.account(jobs.number(name), "State", "ExitCode") == ["COMPLETED", "0:0"])


def test_instance_groups_are_nodes_of_partitions_and_gpus_are_those_of_each(jobs):
    groups = [
        {"InstanceGroupName": "one", "InstanceType": "slurm:batch", "InstanceCount": 1},
        {"InstanceGroupName": "two", "InstanceType": "slurm:short", "InstanceCount": 1},
    ]
    request = jobs.request(SHOWS_ITS_PLACE)
    request["ResourceConfig"] = {"InstanceGroups": groups, "VolumeSizeInGB": 1}
    network = jobs.cluster.machines.network
    options = {"exclusive": True, "partitions": {"short": {"gres": "gpu:2"}}, "interface": f"{network}.0/24"}
    Slurm(data_dir=jobs.data_dir, **options).create(request)
    places = shown(jobs.completed(request["TrainingJobName"]), "place")
    assert sorted(places[0]["names"]) == [f"{network}.1", f"{network}.2"]
    assert [place["gpus"] for place in places] == [None, "0,1"]
    assert {place["node"] for place in places} == {"node1", "node2"}


def test_a_channel_that_only_the_login_node_has_is_told_with_the_node(jobs):
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "file").touch()
        name = jobs.start("pass", channels=[channel("train", f"file://{own}")])
        reason = jobs.wait(name)["FailureReason"]
    assert f"does not have {own!r} of channel 'train'; name a path on a file system that all nodes share" in reason


def test_a_command_runs_beside_the_script_of_a_host(jobs, capfd):
    name = jobs.start("import time; print('up on', flush=True); time.sleep(600)")
    jobs.until_lines(name, "up on")
    command = ("sh", "-c", "echo $SM_CURRENT_HOST on $(hostname) with $(env | grep -c SLURM_) variables; exit 5")
    assert jobs.platform.execute(name, command, host="algo-2") == 5
    assert capfd.readouterr().out == "algo-2 on node2 with 0 variables\n"


def test_every_input_mode_is_served_on_each_node(jobs, tmp_path):
    data = tmp_path / "numbers"
    data.mkdir()
    for number in range(5):
        (data / str(number)).write_text(f"{number}\n")
    uri = f"file://{data}"
    channels = [
        channel("whole", uri),
        channel("shard", uri, "ShardedByS3Key"),
        channel("fast", uri, "ShardedByS3Key", InputMode="FastFile"),
        channel("pipe", uri, "ShardedByS3Key", InputMode="Pipe"),
    ]
    found = shown(jobs.completed(jobs.start(READS_ITS_INPUTS, channels=channels)), "inputs")
    for host, numbers in zip(found, ("024", "13")):
        share = {number: number for number in numbers}
        assert host == {
            "whole": {number: number for number in "01234"},
            "shard": share,
            "fast": share,
            "pipe": [list(numbers)] * 2,
            "links": [True],
            "mounts": 1,
        }
    for node in ("node1", "node2"):
        left = jobs.cluster.run(
            *jobs.cluster.machines.enter(node), "sh", "-c", "ls /tmp; grep fuse /proc/mounts", check=False
        )
        assert "scriptmode-" not in left.stdout.replace(jobs.cluster.folder.name, ""), left.stdout
        assert "fuse" not in left.stdout
