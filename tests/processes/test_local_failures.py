"""Local jobs that fail: what is told, and how soon everything is over."""

import os
import signal
import time

from fakes.local_jobs import channel


def test_an_input_folder_without_files_fails_the_job_with_its_channel(jobs):
    (jobs.folder / "empty").mkdir()
    description = jobs.run("pass", channels=[channel("train", f"file://{jobs.folder}/empty")])
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


def test_an_output_place_that_cannot_be_written_fails_the_job_and_keeps_the_artifacts(jobs):
    (jobs.folder / "file").write_text("")
    description = jobs.run("pass", output=f"file://{jobs.folder}/file")
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: Artifact upload failed: file://")
    kept = jobs.data_dir / "jobs/job-1/output"
    assert str(kept) in description["FailureReason"]
    assert (kept / "model.tar.gz").exists()


def test_a_launcher_that_is_killed_is_a_failure_named_so(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)", hosts=2)
    jobs.until_line(name, "algo-2: up")
    launcher = jobs.job_folder(name).read_processes()["algo-2"].pid
    os.kill(launcher, signal.SIGKILL)
    description = jobs.wait(name, 10)
    assert description["TrainingJobStatus"] == "Failed"
    assert "algo-2" in description["FailureReason"]
    assert "SIGKILL" in description["FailureReason"]
    assert description["FailureReason"].endswith("exit code: 137")
    assert not jobs.processes()


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
    assert time.monotonic() - begun < 3.0
    assert not jobs.processes()
    assert "SIGKILL" in description["FailureReason"]


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
    launcher = jobs.job_folder(name).read_processes()["algo-3"].pid
    begun = time.monotonic()
    os.kill(launcher, signal.SIGKILL)
    description = jobs.wait(name)
    assert time.monotonic() - begun < 3.0
    assert not jobs.processes()
    assert "algo-3" in description["FailureReason"]
