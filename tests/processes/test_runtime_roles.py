"""Tasks beside one another and tasks of whole groups: real processes."""

from pathlib import Path

from fakes.host_folders import write_job

from scriptmode import Estimator, InstanceGroup

EVALUATED = {
    "sagemaker_program": "train.py",
    "sagemaker_multi_worker_mirrored_strategy_enabled": True,
    "sagemaker_multi_worker_mirrored_strategy_evaluator": True,
}
#: A program that is its task alone; argument: the exit code of the evaluator.
TASK = """
import json, os, sys
task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
print("this is the", task, "with GPU", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.exit(int(sys.argv[-1]) if task == "evaluator" else 0)
"""


def start(tmp_path, launch, status):
    """Start two hosts."""
    job = write_job(tmp_path / "job", 2, {"train.py": TASK}, status=status, **EVALUATED)
    return [launch(base) for base in job.values()]


def test_the_last_host_runs_the_evaluator_too(tmp_path, launch):
    launchers = start(tmp_path, launch, status=0)
    assert [launcher.wait() for launcher in launchers] == [0, 0]
    told = [sorted(line for line in each.output.splitlines() if line.startswith("this is")) for each in launchers]
    worker = "this is the worker with GPU None"
    assert told == [[worker], ["this is the evaluator with GPU -1", worker]]


def test_a_failure_of_the_evaluator_is_the_jobs(tmp_path, launch):
    launchers = start(tmp_path, launch, status=5)
    assert [launcher.wait() for launcher in launchers] == [5, 5]
    assert {launcher.failure.splitlines()[0] for launcher in launchers} == {"algo-2, evaluator: exit code 5"}


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
