"""Tasks beside one another, tasks of whole groups, tasks that the hosts were told before: real processes."""

import json
from pathlib import Path

import pytest
from fakes.host_folders import free_ports, write_job
from processes.launchers import child, holding

from scriptmode import Estimator, InstanceGroup

EVALUATED = {
    "sagemaker_program": "train.py",
    "sagemaker_multi_worker_mirrored_strategy_enabled": True,
    "sagemaker_multi_worker_mirrored_strategy_evaluator": True,
}
BETWEEN_GRAPH = {"sagemaker_program": "train.py", "sagemaker_parameter_server_enabled": True}
COORDINATOR = {**BETWEEN_GRAPH, "sagemaker_parameter_server_coordinator": True}
#: A program that is its task alone; argument: the exit code of the evaluator.
TASK = """
import json, os, sys
task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
print("this is the", task, "with GPU", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.exit(int(sys.argv[-1]) if task == "evaluator" else 0)
"""


def start(tmp_path, launch, count, script, variables=None, **hyperparameters):
    """Start every host, with a ``TF_CONFIG`` of its own where one is given."""
    job = write_job(tmp_path / "job", count, {"train.py": script}, **hyperparameters)
    return [launch(base, **given) for base, given in zip(job.values(), variables or [{}] * count)]


def ends_well(launchers, seconds=600):
    codes = [launcher.wait(seconds) for launcher in launchers]
    assert codes == [0] * len(launchers), "\n".join(launcher.output for launcher in launchers)


def steps_of(line):
    """The number of the checkpoint that a line names; trainers beside one another may overshoot their goal."""
    return int(line.rpartition("model.ckpt-")[2])


def test_the_last_host_runs_the_evaluator_too(tmp_path, launch):
    launchers = start(tmp_path, launch, 2, TASK, status=0, **EVALUATED)
    ends_well(launchers, 30)
    told = [sorted(line for line in each.output.splitlines() if line.startswith("this is")) for each in launchers]
    worker = "this is the worker with GPU None"
    assert told == [[worker], ["this is the evaluator with GPU -1", worker]]


def test_a_failure_of_the_evaluator_is_the_jobs(tmp_path, launch):
    launchers = start(tmp_path, launch, 2, TASK, status=5, **EVALUATED)
    assert [launcher.wait() for launcher in launchers] == [5, 5]
    assert {launcher.failure.splitlines()[0] for launcher in launchers} == {"algo-2, evaluator: exit code 5"}


def test_a_task_that_cannot_be_ends_the_job_on_every_host(tmp_path, launch):
    launchers = start(tmp_path, launch, 2, TASK, [{"TF_CONFIG": "{}"}, {}], status=0, **EVALUATED)
    assert [launcher.wait() for launcher in launchers] == [1, 1]
    assert "algo-1: TF_CONFIG is set" in launchers[0].failure


def test_groups_of_an_estimator_have_their_roles_and_keep_them(jobs, code):
    Path(code, "train.py").write_text(TASK)
    groups = [InstanceGroup("one", "local_process", 1), InstanceGroup("two", "local_process", 2)]
    roles = {"worker": groups[1], "evaluator": "one"}
    made = Estimator(
        entry_point="train.py",
        source_dir=code,
        instance_groups=groups,
        distribution={"multi_worker_mirrored_strategy": {"enabled": True, "roles": roles}},
        hyperparameters={"status": 0},
        platform=jobs.platform,
    )
    name = made.fit(logs=False).name
    told = {line.rpartition(" with")[0] for line in jobs.lines(name) if "this is" in line}
    assert told == {"algo-1: this is the evaluator", "algo-2: this is the worker", "algo-3: this is the worker"}
    attached = Estimator.attach(name, platform=jobs.platform)
    assert attached.request(job_name=name) == made.request(job_name=name)


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [1, 2])
def test_an_estimators_chief_leaves_evaluating_to_the_evaluator(tmp_path, launch, count):
    model = tmp_path / "model dir"
    options = {"steps": 20, "mirrored": False, "model_dir": str(model), "sagemaker_parameter_server_evaluator": True}
    launchers = start(tmp_path, launch, count, child("estimates.py"), **options, **BETWEEN_GRAPH)
    ends_well(launchers)
    lines = [line for launcher in launchers for line in launcher.output.splitlines()]
    cluster = "['chief']" if count == 1 else "['chief', 'ps', 'worker']"
    assert f"chief 0 of {cluster}" in lines
    assert "evaluator 0 of []" in lines
    assert (f"worker 0 of {cluster}" in lines) == (count > 1)
    # It sees the first and the last checkpoint, or the last alone.
    assert {line for line in lines if line.endswith("evaluates")} == {"evaluator evaluates"}
    trained = {line.split(" ")[0]: line for line in lines if "has trained to" in line}
    assert set(trained) == {"chief", "evaluator"} | ({"worker"} if count > 1 else set())
    assert steps_of(trained["evaluator"]) >= 20
    assert list((model / "eval").glob("events.*"))
    assert not holding(str(tmp_path))


GROUPS = [
    {"InstanceGroupName": name, "InstanceType": "local_process", "InstanceCount": 1}
    for name in ("memory", "large", "leader")
]


def run_in_groups(jobs, script, **hyperparameters):
    hyperparameters["sagemaker_parameter_server_enabled"] = True
    resources = {"ResourceConfig": {"InstanceGroups": GROUPS, "VolumeSizeInGB": 1}}
    name = jobs.start(script, hyperparameters=hyperparameters, max_run=200, more=resources)
    jobs.completed(name)
    return [line for line in jobs.lines(name) if "scriptmode:" not in line]


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_master_a_worker_and_a_ps_have_a_host_each(jobs, tmp_path):
    roles = {"master": "leader", "worker": ["large"], "ps": "memory"}
    options = {"steps": 20, "mirrored": False, "model_dir": str(tmp_path / "model")}
    lines = run_in_groups(jobs, child("estimates.py"), sagemaker_parameter_server_roles=roles, **options)
    cluster = "['master', 'ps', 'worker']"
    assert {f"algo-3: master 0 of {cluster}", f"algo-2: worker 0 of {cluster}"} <= set(lines)
    assert "algo-3: master evaluates" in lines
    (trained,) = [line for line in lines if line.startswith("algo-3: master has trained")]
    assert steps_of(trained) >= 20
    assert not [line for line in lines if line.startswith("algo-1: ps")]


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_coordinator_steps_on_workers_and_servers_of_their_own(jobs):
    roles = {"chief": "leader", "worker": "large", "ps": "memory"}
    options = {"steps": 20, "sagemaker_parameter_server_coordinator": True}
    lines = run_in_groups(jobs, child("coordinates.py"), sagemaker_parameter_server_roles=roles, **options)
    assert "algo-3: 20 steps counted" in lines


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_inherited_tasks_form_the_cluster(tmp_path, launch):
    ports = free_ports(3)
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(("chief", "worker", "ps"), ports)}
    told = [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})} for role in cluster]
    # The first host of the job is the cluster's ps.
    launchers = start(tmp_path, launch, 3, child("coordinates.py"), told[::-1], steps=20, **COORDINATOR)
    ends_well(launchers)
    assert "20 steps counted" in launchers[2].output
    started = [[role for role in cluster if f" {role} started" in launcher.output] for launcher in launchers]
    assert started == [["ps"], ["worker"], ["chief"]]
    assert not holding(str(tmp_path))
