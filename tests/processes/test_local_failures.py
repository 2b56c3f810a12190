"""Local jobs that fail: what is told, and how soon everything is over."""

import os
import shutil
import signal
import time

import pytest
from fakes.local_jobs import channel, damaged_manifest
from fakes.processes import recorded, until
from fakes.promptness import soon

from scriptmode import DataError, DataNotFoundError, Estimator, JobNotFoundError, SpecError
from scriptmode.platforms.local import LocalPlatform
from scriptmode_runtime.processes import process_tree


def test_an_input_folder_without_files_is_refused_before_anything_starts(jobs):
    (jobs.folder / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match="channel 'train': .*there is nothing in it; put files into it"):
        jobs.start("pass", channels=[channel("train", f"file://{jobs.folder}/empty")])
    assert jobs.platform.list() == []


def test_a_manifest_that_cannot_be_read_fails_the_job_with_its_channel(jobs):
    description = jobs.run("pass", channels=[damaged_manifest(jobs.folder)])
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: Data download failed: channel 'train', file://")
    assert description["ModelArtifacts"] == {"S3ModelArtifacts": ""}


def test_a_failure_names_host_process_and_exit_code_and_ends_every_host(jobs):
    description = jobs.run(
        """
        import os, sys, time
        if os.environ["SM_CURRENT_HOST"] == "algo-2":
            raise RuntimeError("the reason is here")
        time.sleep(60)
        """,
        hosts=3,
    )
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Failed"
    reason = description["FailureReason"]
    assert reason.startswith("AlgorithmError: algo-2")
    assert "RuntimeError: the reason is here" in reason
    assert reason.endswith(", exit code: 1")
    assert not jobs.processes()


def test_the_exit_code_is_the_scripts(jobs):
    assert jobs.run("raise SystemExit(3)")["FailureReason"].endswith(", exit code: 3")


def test_a_kill_is_not_reported_as_a_lack_of_memory_however_much_was_written_before(jobs):
    description = jobs.run("""
        import os
        for number in range(40):
            print(number, "x" * 60, flush=True)
        os.kill(os.getpid(), 9)
    """)
    first, hint, *rest = description["FailureReason"].splitlines()
    assert first == "AlgorithmError: algo-1, script: killed by SIGKILL"
    assert hint.startswith("If it was not killed on purpose, memory ran out: ")
    assert rest[-1] == f"39 {'x' * 60}, exit code: 137"


def test_a_failed_job_delivers_its_output_and_keeps_its_sandbox(jobs):
    jobs.run("""
        import os
        with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], "trace"), "w") as file:
            file.write("t")
        raise SystemExit(1)
    """)
    assert (jobs.data_dir / "jobs/job-1/output/output.tar.gz").exists()
    assert not (jobs.data_dir / "jobs/job-1/output/model.tar.gz").exists()
    assert (jobs.data_dir / "jobs/job-1/hosts/algo-1/output/failure").exists()


def test_an_output_place_that_cannot_be_written_is_told_before_the_start(jobs):
    (jobs.folder / "file").write_text("")
    with pytest.raises(DataError, match="file/below' cannot be written: Not a directory"):
        jobs.start("pass", output=f"file://{jobs.folder}/file/below")
    assert jobs.platform.list() == []


def test_an_output_place_that_is_lost_under_way_fails_the_job_and_keeps_the_artifacts(jobs):
    out = jobs.folder / "out"
    program = f"import pathlib; out = pathlib.Path({str(out)!r}); out.rmdir(); out.touch()"
    description = jobs.run(program, output=f"file://{out}")
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: Artifact upload failed: file://")
    kept = jobs.data_dir / "jobs/job-1/output"
    assert str(kept) in description["FailureReason"]
    assert (kept / "model.tar.gz").exists()


def test_a_launcher_that_is_killed_is_a_failure_named_so(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)", hosts=2)
    jobs.until_line(name, "algo-2: up")
    launcher = recorded(jobs.job_folder(name))["algo-2"].pid
    os.kill(launcher, signal.SIGKILL)
    description = jobs.wait(name, 10)
    assert description["TrainingJobStatus"] == "Failed"
    assert "algo-2" in description["FailureReason"]
    assert "SIGKILL" in description["FailureReason"]
    assert description["FailureReason"].endswith("exit code: 137")
    assert not jobs.processes()


@pytest.mark.prompt
def test_a_failed_rank_ends_the_job_within_three_seconds(jobs):
    script = """
        import os, signal, time
        print("pid", os.getpid(), flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    """
    name = jobs.start(script, hosts=3)
    for host in ("algo-1", "algo-2", "algo-3"):
        jobs.until_line(name, f"{host}: pid")
    rank = int(jobs.until_line(name, "algo-2: pid")[0].split()[-1])
    begun = time.monotonic()
    os.kill(rank, signal.SIGKILL)
    description = jobs.wait(name)
    soon(time.monotonic() - begun, 3.0)
    assert not jobs.processes()
    assert "SIGKILL" in description["FailureReason"]


@pytest.mark.prompt
def test_a_failed_host_of_a_cluster_ends_the_job_within_three_seconds(jobs):
    script = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", json.loads(os.environ["TF_CONFIG"])["task"], flush=True)
        time.sleep(60)
    """.replace("import os", "import json, os")
    cluster = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
    name = jobs.start(script, hosts=3, hyperparameters=cluster)
    for host in ("algo-1", "algo-2", "algo-3"):
        jobs.until_line(name, f"{host}: up")
    launcher = recorded(jobs.job_folder(name))["algo-3"].pid
    begun = time.monotonic()
    os.kill(launcher, signal.SIGKILL)
    description = jobs.wait(name)
    soon(time.monotonic() - begun, 3.0)
    assert not jobs.processes()
    assert "algo-3" in description["FailureReason"]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        pytest.param("pass", 0, id="nothing, and names no place"),
        pytest.param("import os; os.environ['SM_MODEL_DIR']", 1, id="nothing, and names the variable"),
        pytest.param("import sys; print('--model_dir' in sys.argv)", 1, id="nothing, and names the argument"),
        pytest.param("open('weights.keras', 'w').close()", 1, id="in its working directory"),
        pytest.param("import os; os.mkdir(os.environ['SM_MODEL_DIR'] + '/only a folder')", 1, id="a folder"),
        pytest.param("import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'w').close()", 0, id="a file"),
        pytest.param("raise SystemExit(1)", 0, id="nothing after a failure"),
    ],
)
def test_a_completed_job_that_left_no_model_is_told_where_to_save_it(jobs, program, told):
    name = jobs.run(program, hosts=2)["TrainingJobName"]
    lines = [line for line in jobs.lines(name) if "the script saved no files in SM_MODEL_DIR" in line]
    assert len(lines) == told
    assert all(
        "save to the directory that it names" in line and line.startswith("algo-1: scriptmode: ") for line in lines
    )


def test_a_model_in_another_place_is_named_where_none_is_delivered(jobs, tmp_path):
    place = tmp_path / "models"
    name = jobs.run(
        """
        import os, sys
        os.mkdir("run")
        open("run/weights.h5", "w").close()
        folder = sys.argv[sys.argv.index("--model_dir") + 1].removeprefix("file://")
        os.makedirs(folder)
        open(folder + "/checkpoint", "w").close()
        """,
        hyperparameters={"model_dir": place.as_uri()},
    )["TrainingJobName"]
    (line,) = [line for line in jobs.lines(name) if "the script saved no files in SM_MODEL_DIR" in line]
    assert line.endswith(
        f"; its working directory, which is not kept, has 'run/weights.h5'; model_dir, {place.as_uri()}, has files"
    )


def test_a_job_that_was_stopped_is_not_told_that_it_left_no_model(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)")
    jobs.until_line(name, "up")
    jobs.platform.stop(name)
    jobs.wait(name)
    assert not any("SM_MODEL_DIR" in line for line in jobs.lines(name))


DEAF = """
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = os.environ["SM_OUTPUT_DATA_DIR"]
    print("up", flush=True)
    while True:
        os.makedirs(folder, exist_ok=True)
        time.sleep(0.01)
"""

#: Seconds. The grace of these jobs is 20 s: ending later than this would mean that it was waited for.
BELOW_THE_GRACE = 15.0


@pytest.mark.parametrize(
    "program",
    [pytest.param("import time; print('up', flush=True); time.sleep(600)", id="sleeps"), pytest.param(DEAF, id="deaf")],
)
def test_a_job_whose_folder_is_removed_ends_with_everything_of_it(jobs, program):
    name = jobs.start(program, hosts=2)
    jobs.until_line(name, "algo-2: up")
    everything = list(recorded(jobs.job_folder(name)).values())
    folder = jobs.job_folder(name).path
    shutil.rmtree(folder, ignore_errors=True)
    until(lambda: not any(process_tree.is_running(each) for each in everything), BELOW_THE_GRACE)
    assert not jobs.processes()
    assert not folder.exists()
    assert jobs.platform.list() == []
    with pytest.raises(JobNotFoundError):
        jobs.platform.describe(name)


def test_a_job_whose_folder_is_removed_while_it_stops_does_not_wait_for_the_grace(jobs):
    name = jobs.start(DEAF)
    jobs.until_line(name, "up")
    jobs.platform.stop(name)
    until(lambda: jobs.job_folder(name).read_state().secondary == "Stopping")
    agent = jobs.agent(name)
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not process_tree.is_running(agent), BELOW_THE_GRACE)
    assert not jobs.processes()


def test_a_job_whose_folder_is_removed_while_it_downloads_ends(jobs):
    name = jobs.start_a_long_download()
    agent = jobs.agent(name)
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not process_tree.is_running(agent))
    assert not jobs.job_folder(name).path.exists()


def test_who_follows_a_job_whose_folder_is_removed_is_told(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)")
    events = jobs.platform.log_events(name, follow=True)
    next(event for event in events if event.message == "up")
    agent = jobs.agent(name)
    jobs.delete(name)
    with pytest.raises(JobNotFoundError, match=name):
        list(events)
    until(lambda: not process_tree.is_running(agent))


def test_a_new_job_takes_the_name_of_a_removed_one_and_is_left_alone_by_its_agent(jobs):
    request = jobs.request("import time; print('up', flush=True); time.sleep(600)")
    name = request["TrainingJobName"]
    jobs.platform.create(request)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    jobs.delete(name)
    jobs.platform.create(request)
    until(lambda: not process_tree.is_running(agent))
    jobs.until_line(name, "up")
    assert jobs.platform.describe(name)["TrainingJobStatus"] == "InProgress"


def test_another_tensorflow_than_the_hosts_have_is_told(tmp_path):
    (tmp_path / "train.py").touch()
    made = Estimator(
        entry_point=str(tmp_path / "train.py"),
        instance_type="local_process",
        framework_version="1.12",
        platform=LocalPlatform(data_dir=tmp_path / "data"),
    )
    with pytest.raises(SpecError, match="framework_version is '1.12', but hosts that are processes run with"):
        made.request()
