"""A job's life on this machine, with real agents and real hosts."""

import json
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import until
from fakes.promptness import soon

from scriptmode.errors import DataError, JobExistsError, JobNotFoundError, PlatformError
from scriptmode.installation import install_command
from scriptmode.platforms.local import LocalPlatform
from scriptmode.spec.training_job import Resources, Script, TrainingJobSpec

TELL = """
    import json, os, sys
    with open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"] + ".json"), "w") as file:
        json.dump({"environ": dict(os.environ), "argv": sys.argv[1:]}, file)
"""


def told(jobs, description):
    return {name[: -len(".json")]: json.loads(content) for name, content in jobs.model(description).items()}


def test_a_job_trains_and_leaves_its_model_below_the_output_path(jobs):
    description = jobs.run("""
        import os
        print("training")
        with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w") as file:
            file.write("1 2 3")
    """)
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Completed"
    artifacts = description["ModelArtifacts"]["S3ModelArtifacts"]
    assert artifacts == f"file://{jobs.data_dir}/jobs/job-1/output/model.tar.gz"
    assert jobs.model(description) == {"weights": b"1 2 3"}
    assert "algo-1: training" in jobs.lines("job-1")
    passed = [transition["Status"] for transition in description["SecondaryStatusTransitions"]]
    assert passed == ["Starting", "Downloading", "Training", "Uploading", "Completed"]


@pytest.mark.prompt
def test_create_returns_before_the_hosts_run(jobs):
    request = jobs.request("pass")
    begun = time.monotonic()
    arn = jobs.platform.create(request)
    soon(time.monotonic() - begun, 2.0)
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:training-job/job-1"
    assert jobs.platform.describe("job-1")["TrainingJobArn"] == arn
    jobs.wait("job-1")


def test_every_host_has_the_platforms_files_and_variables(jobs):
    description = jobs.run(TELL, hosts=2, hyperparameters={"dir": "/opt/ml/checkpoints", "lr": 0.1})
    hosts = told(jobs, description)
    assert sorted(hosts) == ["algo-1", "algo-2"]
    for name, content in hosts.items():
        environ = content["environ"]
        base = f"{jobs.data_dir}/jobs/job-1/hosts/{name}"
        assert environ["SM_CURRENT_HOST"] == name
        assert json.loads(environ["SM_HOSTS"]) == ["algo-1", "algo-2"]
        assert environ["SM_MODEL_DIR"] == f"{base}/model"
        assert environ["SM_NETWORK_INTERFACE_NAME"] == "lo"
        assert environ["TRAINING_JOB_NAME"] == "job-1"
        assert environ["TRAINING_JOB_ARN"].endswith(":training-job/job-1")
        assert environ["AWS_REGION"] == "us-east-1"
        assert content["argv"] == ["--dir", f"{base}/checkpoints", "--lr", "0.1"]


def test_two_jobs_run_side_by_side(jobs):
    meet = """
        import os, sys, time
        places = sys.argv[1:]
        mine, other = places[3], places[1]
        open(mine, "w").close()
        deadline = time.monotonic() + 20
        while not os.path.exists(other):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    """
    one, two = str(jobs.folder / "one"), str(jobs.folder / "two")
    first = jobs.start(meet, hyperparameters={"mine": one, "a": two}, hosts=2)
    second = jobs.start(meet, hyperparameters={"mine": two, "a": one}, hosts=2)
    assert jobs.wait(first)["TrainingJobStatus"] == "Completed"
    assert jobs.wait(second)["TrainingJobStatus"] == "Completed"


def test_the_same_name_again_is_refused_and_changes_nothing(jobs):
    request = jobs.request("pass")
    jobs.platform.create(request)
    with pytest.raises(JobExistsError, match="job-1"):
        jobs.platform.create(request)
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Completed"


def test_of_many_clients_with_one_name_exactly_one_gets_the_job(jobs):
    request = jobs.request("pass")

    def create(_):
        try:
            return jobs.platform.create(request)
        except JobExistsError:
            return None

    with ThreadPoolExecutor(4) as pool:
        assert len([arn for arn in pool.map(create, range(8)) if arn]) == 1
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Completed"


def test_a_missing_channel_path_is_told_before_anything_is_written(jobs):
    request = jobs.request("pass", channels=[channel("train", "file:///no/such/place")])
    with pytest.raises(DataError, match=r"'train'.*/no/such/place"):
        jobs.platform.create(request)
    assert not (jobs.data_dir / "jobs").exists()


def test_secrets_are_readable_by_their_owner_alone(jobs):
    jobs.platform.put_source(b"source", f"file://{jobs.data_dir}/sources/a/source/sourcedir.tar.gz")
    jobs.run("pass")
    jobs.platform.list()
    folders = [
        jobs.data_dir,
        *jobs.data_dir.iterdir(),
        *jobs.data_dir.glob("jobs/*"),
        *jobs.data_dir.glob("sources/**"),
    ]
    for folder in filter(Path.is_dir, folders):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    job = jobs.job_folder("job-1").path
    sources = jobs.data_dir.glob("sources/**/*.tar.gz")
    for file in (job / "job.json", job / "state.json", jobs.data_dir / "ended-jobs.json", *sources):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_folder_of_sources_that_others_can_read_is_closed(jobs):
    sources = jobs.data_dir / "sources"
    sources.mkdir(parents=True)
    sources.chmod(0o755)
    jobs.platform.put_source(b"source", f"file://{sources}/sourcedir.tar.gz")
    assert stat.S_IMODE(sources.stat().st_mode) == 0o700


def test_variables_of_other_jobs_do_not_reach_the_hosts(jobs, monkeypatch):
    for name in ("SM_HP_OLD", "SAGEMAKER_OLD", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PRTE_X"):
        monkeypatch.setenv(name, "{}")
    monkeypatch.setenv("KEPT_FROM_THE_CLIENT", "yes")
    request = jobs.request(TELL)
    request["Environment"] = {"ASKED": "/opt/ml/model", "PLAIN": "/opt/mlops"}
    jobs.platform.create(request)
    environ = told(jobs, jobs.wait("job-1"))["algo-1"]["environ"]
    assert not {"SM_HP_OLD", "SAGEMAKER_OLD", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PRTE_X"} & set(environ)
    assert environ["KEPT_FROM_THE_CLIENT"] == "yes"
    assert environ["ASKED"] == environ["SM_MODEL_DIR"]
    assert environ["PLAIN"] == "/opt/mlops"


def test_another_process_sees_lists_and_follows_the_job(jobs):
    name = jobs.start("""
        import time
        for number in range(20):
            print("line", number, flush=True)
            time.sleep(0.05)
    """)
    code = f"""
from scriptmode.platforms.local import LocalPlatform
platform = LocalPlatform(data_dir={str(jobs.data_dir)!r})
print([job["TrainingJobName"] for job in platform.list()])
for event in platform.log_events({name!r}, follow=True):
    print(event.host, event.message)
print(platform.describe({name!r})["TrainingJobStatus"])
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "['job-1']"
    assert [line for line in lines if " line " in line] == [f"algo-1 line {number}" for number in range(20)]
    assert lines[-1] == "Completed"
    assert done.stderr == ""


@pytest.mark.prompt
def test_following_ends_when_the_job_does(jobs):
    name = jobs.start("print('last', end='')")
    lines = [event.message for event in jobs.platform.log_events(name, follow=True)]
    ended = time.time()
    description = jobs.platform.describe(name)
    assert description["TrainingJobStatus"] == "Completed"
    assert any("last" in line for line in lines)
    soon(ended - description["TrainingEndTime"].timestamp(), 0.5)


def test_an_unknown_job_is_told_with_the_one_that_was_meant(jobs):
    jobs.run("pass")
    for call in (
        lambda: jobs.platform.describe("job1"),
        lambda: jobs.platform.stop("job1"),
        lambda: jobs.platform.log_events("job1", follow=False),
    ):
        with pytest.raises(JobNotFoundError, match="did you mean 'job-1'"):
            call()
    for hostile in ("", "..", "../jobs/job-1", ".new"):
        with pytest.raises(JobNotFoundError):
            jobs.platform.describe(hostile)


def test_an_interpreter_that_is_too_old_is_refused_by_its_version(tmp_path):
    python = tmp_path / "python3.8"
    python.write_text('#!/bin/sh\ncase "$2" in *version_info*) echo 3 8;; *) exit 1;; esac\n')
    python.chmod(0o755)
    with pytest.raises(PlatformError) as raised:
        LocalJobs(tmp_path, python=python).start("pass")
    assert str(raised.value) == (
        f"{python} cannot run training hosts: it is Python 3.8; give Python 3.9 or later as python=..."
    )


def test_the_hosts_interpreter_is_the_one_given(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    platform = LocalJobs(tmp_path, python=python)
    with pytest.raises(PlatformError, match=rf"scriptmode_runtime.*{re.escape(install_command(python=str(python)))}"):
        platform.start("pass")
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "runtime.pth").write_text(str(Path(__file__).parents[2] / "entrypoints"))
    name = platform.start("import sys; print('python', sys.executable)")
    assert platform.wait(name)["TrainingJobStatus"] == "Completed"
    assert f"algo-1: python {python}" in platform.lines(name)
    platform.close()


def test_an_interpreter_that_is_not_there_is_told(tmp_path):
    with pytest.raises(PlatformError, match="no/such/python"):
        LocalJobs(tmp_path, python="/no/such/python").start("pass")


def test_the_data_directory_is_the_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "named"))
    spec = TrainingJobSpec("job", Resources(1, "local_process"), script=Script("train.py"))
    assert LocalPlatform().complete(spec).output.path == f"file://{tmp_path}/named/jobs"


def test_the_client_keeps_no_child_and_no_warning(jobs):
    code = f"""
import gc, os, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from fakes.local_jobs import LocalJobs
jobs = LocalJobs({str(jobs.folder)!r})
jobs.start("pass")
gc.collect()
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("no child\n", "")
    until(lambda: jobs.ended("job-1"))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_caller_without_standard_streams_starts_jobs_as_any(closed, jobs):
    request = jobs.request("print('up')")
    code = (
        "import json, sys; from scriptmode.platforms.local import LocalPlatform; "
        "LocalPlatform(data_dir=sys.argv[1]).create(json.loads(sys.argv[2]))"
    )
    words = (sys.executable, "-c", code, str(jobs.data_dir), json.dumps(request))
    subprocess.run(["bash", "-c", f'exec "$@" {closed}', "bash", *words], check=True, timeout=60)
    name = request["TrainingJobName"]
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    assert [line for line in jobs.lines(name) if "up" in line]
