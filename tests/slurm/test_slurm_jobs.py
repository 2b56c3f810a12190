"""Jobs of two hosts, each on a node: what a script finds there, and how a job ends for Slurm."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from fakes.cluster_scripts import LAYOUTS, compute_together
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
    "links": [os.path.islink(path) for path in ["/opt/ml/input/data/File/part"] if os.path.lexists(path)],
}))
open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w").write("model")
"""


def shown(lines, word):
    """What each host printed as JSON after a word, in the order of the hosts."""
    found = (line.partition(f": {word} ") for line in sorted(lines))
    return [json.loads(text) for _, separator, text in found if separator]


def test_each_host_is_a_node_with_its_own_address_and_none_of_slurm_s_variables(jobs, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part").touch()
    modes = [channel(mode, (tmp_path / "in").as_uri(), InputMode=mode) for mode in ("File", "FastFile")]
    name = jobs.start(SHOWS_ITS_PLACE, channels=modes)
    places = shown(jobs.completed_lines(name), "place")
    addresses = [f"{jobs.cluster.machines.network}.{number}" for number in (1, 2)]
    for number, place in enumerate(places, 1):
        assert place == {
            "node": f"node{number}", "of Slurm": [], "gpus": None, "interface": "eth0", "names": addresses,
            "own /opt/ml": f"algo-{number}", "links": [True],
        }  # fmt: skip
    assert set(jobs.model(jobs.platform.describe(name).response)) == {"algo-1", "algo-2"}
    until(lambda: jobs.cluster.account(jobs.number(name), "State", "ExitCode") == ["COMPLETED", "0:0"])
    until(lambda: not jobs.remains(name))
    for node in ("node1", "node2"):
        own = jobs.cluster.run(*jobs.cluster.machines.enter(node), "ls", "/tmp").stdout
        assert "scriptmode-" not in own.replace(jobs.cluster.folder.name, "")


def test_instance_groups_are_nodes_of_partitions_and_gpus_are_those_of_each(jobs):
    groups = [
        {"InstanceGroupName": "one", "InstanceType": "slurm:batch", "InstanceCount": 1},
        {"InstanceGroupName": "two", "InstanceType": "slurm:short", "InstanceCount": 1},
    ]
    request = jobs.request(SHOWS_ITS_PLACE, max_run=60)
    request["ResourceConfig"] = {"InstanceGroups": groups, "VolumeSizeInGB": 1}
    network = jobs.cluster.machines.network
    options = {"exclusive": True, "partitions": {"short": {"gres": "gpu:2"}}, "interface": f"{network}.0/24"}
    Slurm(data_dir=jobs.data_dir, **options).create(request)
    places = shown(jobs.completed_lines(request["TrainingJobName"]), "place")
    assert sorted(places[0]["names"]) == [f"{network}.1", f"{network}.2"]
    assert [place["gpus"] for place in places] == [None, "0,1"]
    assert {place["node"] for place in places} == {"node1", "node2"}
    first, name = int(jobs.number(request["TrainingJobName"])), request["TrainingJobName"]
    found = [activity.place for activity in jobs.platform.activity(name).values()]
    assert found == [
        f"Slurm job {number}, partition {partition}, {place['node']}"
        for number, partition, place in zip((first, first + 1), ("batch", "short"), places)
    ]


def test_a_channel_that_only_the_login_node_has_is_told_with_the_node(jobs):
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "file").touch()
        name = jobs.start("pass", channels=[channel("train", f"file://{own}")])
        reason = jobs.wait(name)["FailureReason"]
    assert f"does not have {own!r} of channel 'train'; name a path on a file system that all nodes share" in reason


RANKS = """
import os, socket
rank, size = (os.environ["OMPI_COMM_WORLD_" + name] for name in ("RANK", "SIZE"))
print("rank", rank, "of", size, "on", socket.gethostname(), flush=True)
"""


def test_a_host_has_the_cpus_of_its_allocation_and_its_step_ends_with_its_code(jobs, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # of the login node
    script = """
        import os, sys
        print("cpus", *map(os.environ.get, ("SM_NUM_CPUS", "OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS")), flush=True)
        sys.exit(5 if os.environ["SM_CURRENT_HOST"] == "algo-2" else 0)
    """
    request = jobs.request(script, hosts=2, max_run=60)
    (tmp_path / "site.sh").write_text("#!/bin/sh\n#SBATCH --ntasks-per-node=2 --time=5\n")
    Slurm.from_sbatch(tmp_path / "site.sh", data_dir=jobs.data_dir).create(request)
    name = request["TrainingJobName"]
    assert jobs.wait(name)["TrainingJobStatus"] == "Failed"
    assert "cpus 2 2 2" in "\n".join(jobs.lines(name))
    until(lambda: "algo-2, script: exit code 5" in jobs.cluster.job(jobs.number(name)).get("Comment", ""))
    until(lambda: jobs.cluster.step_codes(jobs.number(name)).get("algo-2") == ["5:0"])


@pytest.mark.tf
@pytest.mark.mpi
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_computes_with_the_one_cpu_that_slurm_gives_a_host_and_a_proxy(jobs, monkeypatch, layout):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    compute_together(jobs, layout)


@pytest.mark.mpi
def test_mpirun_starts_ranks_on_both_nodes_without_ssh_and_without_slurm(jobs):
    distribution = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    lines = jobs.completed_lines(jobs.start(RANKS, hyperparameters=distribution))
    found = sorted(line.partition("rank ")[2] for line in lines if " of 4 on " in line)
    assert found == ["0 of 4 on node1", "1 of 4 on node1", "2 of 4 on node2", "3 of 4 on node2"]


@pytest.mark.parametrize("line", ["no_such_module load cuda", "echo loaded >&2"])
def test_a_line_of_the_setup_that_fails_is_a_warning_of_the_job_which_goes_on(jobs, line):
    script = "import os, sys; print('has', os.environ['LOADED'], file=sys.stderr)"
    jobs.platform = Slurm(data_dir=jobs.data_dir, setup=(line, "seq 9 >&2", "export LOADED=rest"))
    lines = jobs.completed_lines(name := jobs.start(script))
    assert sum("has rest" in line for line in lines) == 2
    warned = [event.message for event in jobs.platform.events(name) if event.reason == "SetupFailed"]
    assert [text for text in lines if "setup" in text] == [f"algo-1: scriptmode: {text}" for text in warned]
    if line.startswith("no"):
        (text,) = warned
        assert "a line of Slurm(setup=...) failed: " in text
        assert "no_such_module: command not found: setup: exit code 127 in line " in text
    else:
        assert not warned


def test_a_setup_that_exits_is_told_in_the_agent_s_log(jobs):
    jobs.platform = Slurm(data_dir=jobs.data_dir, setup="echo no license >&2\nexit 3")
    name = jobs.start(SHOWS_ITS_PLACE)
    assert "ended with exit code 3 before the job's agent began" in jobs.wait(name)["FailureReason"]
    assert "no license" in jobs.job_folder(name).agent_log.read_text()


def test_submitting_jobs_and_following_one_that_waits_take_few_calls(jobs, monkeypatch, tmp_path):
    for command in ("sbatch", "scontrol", "sinfo", "squeue", "sacct", "scancel"):
        program = tmp_path / command
        program.write_text(f'#!/bin/sh\necho {command} >>{tmp_path}/calls\nexec {shutil.which(command)} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jobs.platform = Slurm(data_dir=jobs.data_dir, hold=True)

    def count(what):
        before = len((tmp_path / "calls").read_text().split()) if (tmp_path / "calls").exists() else 0
        return what(), len((tmp_path / "calls").read_text().split()) - before

    name, calls = count(lambda: jobs.start(SHOWS_ITS_PLACE))
    assert calls <= 5
    assert jobs.platform.activity(name)["algo-2"].place == f"Slurm job {jobs.number(name)}"
    _, calls = count(lambda: [jobs.start(SHOWS_ITS_PLACE) for _ in range(10)])
    assert calls <= 40

    def follow():
        until = time.monotonic() + 24
        while time.monotonic() < until:
            told = jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]
            assert "JobHeldUser" in told
            time.sleep(0.5)

    assert count(follow)[1] <= 7


#: Headers of batch scripts.
HEADERS = {
    "tasks of a node times CPUs": "#SBATCH --nodes=2 --ntasks-per-node=4\n#SBATCH -c 4 --mem-per-cpu=500 -t 10",
    "tasks in all": "#SBATCH -n 15 --mem-per-cpu=2048",
    "tasks on two nodes": "#SBATCH -N2 -n 15 --mem-per-cpu=2048 --exclusive=user",
    "tasks and their most on a node": "#SBATCH -N 2 -n 8 --tasks-per-node=4 --gpus-per-task=0",
    "tasks of each GPU": "#SBATCH --gpus=2 --ntasks-per-gpu=3 -N 2",
    "an indented comment": "#SBATCH -c 2\n  # of the site\n\n#SBATCH --mem=3G --time=10 # short\n",
    "an option of several lines": "#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL\n#SBATCH --constraint=",
    "an option that counts once": "#SBATCH -p short --mem=1G -Q\n#SBATCH --mem=2G -p batch --comment='a \"b # c'",
    "what a job sets by itself": "#SBATCH -J other -e /x --output=/y --requeue --open-mode=truncate --signal=2",
    "no lines behind a command": "#SBATCH -c 3\ntrue\n#SBATCH -c 5",
}
#: Headers of public repositories, with what asks for resources, and not for more than the cluster has.
PUBLIC_HEADERS = """
--time=7-00:00:00; --ntasks=1; --cpus-per-task=16
--time=1:00:00; --nodes=1; --ntasks-per-node=16; --exclusive
--time=80:00:00; --nodes=1; --ntasks-per-node=1; --gres=gpu:1; --mem-per-cpu=8G; --cpus-per-task=1
--nodes=1; --ntasks-per-node=1; --cpus-per-task=8; --mem-per-cpu=4571; --time=05:00:00
--nodes=2   # num_nodes; --gres=gpu:2; --ntasks-per-node=2   # devices; --mem=0; --cpus-per-task=8; --time=02:00:00
--nodes=1; --ntasks-per-node=8; --time=9:59:00; --mem=50gb
-p batch; --gres=gpu:1; -n 4; --mem=16G; -t 02:00:00
--time=08:00:00; --gpus=2; --mem=24GB; --ntasks=8; --gres=gpu:2
--time=0-23:00:00   # DD-HH:MM:SS; --mem-per-cpu=4G; --partition=batch,short
--time=1:00:00; --ntasks=1   # cores; --nodes=1; --gpus=1; --mem-per-cpu=32000M
--partition batch; --nodes 1; --cpus-per-task=12; --mem-per-cpu=5000M; --time=0-5:00:00
--cpus-per-gpu=3; --gpus=2; --mem-per-cpu=4096; --time=3-00:00:00
--mem-per-cpu=2000  #<- of 128 cores; --nodes=1; --ntasks-per-node=16; --time=0-24:00:00
--gres=gpu; --cpus-per-task=4; --time=120:00:00
-N 2; -p batch; --ntasks-per-node 8; -t 00:01:00
-N 2; -t 14:00:00
--nodes=1; --gpus-per-node=2; --mem=0; --exclusive
-n 16; -t 12:00:00; --gpus-per-node=1
--gpus-per-node=2; --ntasks-per-node=8; --time=00:20:00
-N 2; -t 04:00:00; --ntasks-per-node=1; --exclusive; --mem=0; --overcommit
-N 1; -t 0:30:00; --exclusive; --gres=gpu:1; --ntasks-per-node=1; --hint=nomultithread
--exclusive
--nodes=1; --ntasks-per-node=1; --gpus-per-task=1; --cpus-per-task=16; --gres=gpu:1
-t 00:45:00; -N 2; --ntasks-per-node=2; --gpus-per-task=1; --gpu-bind=closest
-t 23:59:00; -n 1; -c 16; --gpus-per-task=1
--nodes=1; --ntasks=1; --cpus-per-task=16; --tasks-per-node=1; --time=2:00:00; --constraint=
--nodes=2; --ntasks-per-core=1; --ntasks-per-node=1; --cpus-per-task=1; --hint=nomultithread; --time=24:00:00
--tasks-per-node=5; --ntasks=5; --mem=16g; --gres=gpu:1; -t 0-12:00:00
--nodes=2; --ntasks=32; --tasks-per-node=16; --cpus-per-task=1; --time=00:20:00
--ntasks=1; --tasks-per-node=16; --cpus-per-task=1; --mem=18000M; --time=00:20:00
"""
HEADERS.update({row: f"#SBATCH {row}".replace("; ", "\n#SBATCH ") for row in PUBLIC_HEADERS.strip().splitlines()})
FIELDS = (
    "NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "MinMemoryCPU", "MinMemoryNode", "TRES", "TresPerJob", "TimeLimit",
    "TresPerTask", "TresPerNode", "NtasksPerTRES", "OverSubscribe", "Features", "MailType", "Comment", "Partition",
    "JobName", "Requeue", "StdErr",
)  # fmt: skip


def test_a_header_gives_a_job_what_sbatch_gives_its_script(jobs, tmp_path):
    script, wrong = tmp_path / "site.sh", {}
    for title, header in HEADERS.items():
        script.write_text(f"#!/bin/sh\n{header}\n/bin/true\n")
        expected = jobs.cluster.job(jobs.cluster.run("sbatch", "--parsable", "--hold", script).stdout.strip())
        jobs.platform = Slurm.from_sbatch(script, data_dir=jobs.data_dir, hold=True)
        hosts = jobs.platform.header_nodes
        assert expected["NumNodes"].partition("-")[0] == str(hosts)
        name = jobs.start("pass", hosts=hosts, max_run=86400)
        found = jobs.cluster.job(jobs.number(name))
        expected.update(NumNodes=f"{hosts}-{hosts}", JobName=name, Requeue="0", StdErr=found["StdOut"])
        wrong[title] = {field: found.get(field) for field in FIELDS if found.get(field) != expected.get(field)}
    assert not any(wrong.values()), wrong
