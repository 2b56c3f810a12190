"""`scriptmode serve` as the first process of a container, with which the kernel kills all others."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from fakes.local_jobs import COUNTS, request_for
from fakes.processes import until
from fakes.promptness import GENEROUS
from faults import processes
from serve.conftest import Api, serving
from serve.test_serve_tuning import results, tuning_request

from scriptmode._core.request.parse import parse_request
from scriptmode.testing import RunningServer
from scriptmode_local import LocalPlatform
from scriptmode_local._hosts.local_agent import SERVER_END_FILE, is_server_ending
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder, JobStore
from scriptmode_local._store.state import starting_state
from scriptmode_serve._http.server import _terminate_agents

pytestmark = [pytest.mark.root, pytest.mark.slow]
SERVER = ("-m", "scriptmode", "serve", "--json", "--listen", "127.0.0.1:0", "--s3", "memory", "--queue", "2")
WAITS = """
    import signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("step 1", flush=True)
    time.sleep(600)
"""


@contextmanager
def contained(folder):
    """Run a server as process 1. At the context's end it gets SIGTERM; then every process has ended."""
    data = folder / "data"
    data.mkdir()
    command = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *SERVER)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(data)}
    with subprocess.Popen((*command, "--allow", folder), env=environment, stdout=subprocess.PIPE) as process:
        try:
            yield Api(RunningServer(json.loads(process.stdout.readline())["url"], data, {}, process), folder)
            (server,) = processes.children(process.pid)
            os.kill(server, signal.SIGTERM)
            assert process.wait(GENEROUS) == 0
        finally:
            process.kill()


def has_printed(folder, line):
    log = folder / "logs" / "algo-1.log"
    return log.exists() and line in log.read_text()


def test_the_end_of_the_container_is_the_reason_of_jobs_that_end_and_the_others_go_on(tmp_path):
    checkpoints = {"S3Uri": f"file://{tmp_path}/checkpoints", "LocalPath": "/opt/ml/checkpoints"}
    with contained(tmp_path) as api:
        retried = api.start(COUNTS, CheckpointConfig=checkpoints, RetryStrategy={"MaximumRetryAttempts": 1})
        once = api.start(WAITS)
        queued = api.start("print('ran')")
        jobs = tmp_path / "data" / "jobs"
        until(lambda: all(has_printed(jobs / name, "step 1") for name in (retried, once)), 60)
    state = json.loads((jobs / retried / "state.json").read_text())
    assert state["transitions"][-1]["message"] == "the server's container was stopped", state
    # As a client that looks at it until the container has ended.
    note = LocalPlatform(data_dir=jobs.parent).describe(retried).response["SecondaryStatusTransitions"][-1]
    assert note["StatusMessage"].endswith("; the next scriptmode serve starts it again"), note
    assert not JobFolder(jobs / retried).has_agent()
    assert is_server_ending(JobFolder(jobs / retried))
    os.utime(jobs.parent / SERVER_END_FILE, (0, 0))
    assert not is_server_ending(JobFolder(jobs / retried))
    with serving(tmp_path, "--s3", "memory") as api:
        reason = api.wait(once)["FailureReason"]
        assert reason == (
            "InternalServerError: the server's container was stopped; to have such a job started again, give it "
            "max_retry_attempts, or use_spot_instances=True and max_wait"
        )
        found = api.wait(retried)
        assert found["TrainingJobStatus"] == "Completed", found
        assert [each["Status"] for each in found["SecondaryStatusTransitions"]].count("Interrupted") == 1
        log = (jobs / retried / "logs" / "algo-1.log").read_text()
        assert log.count("step 0") == 1, log
        found = api.wait(queued)
        assert found["TrainingJobStatus"] == "Completed", found


def test_a_tuning_job_goes_on_in_the_next_server_and_starts_no_job_while_the_container_ends(tmp_path):
    with contained(tmp_path) as api:
        api.sagemaker.create_hyper_parameter_tuning_job(**tuning_request(api, "tuned", seconds="30"))
        jobs = tmp_path / "data" / "jobs"
        until(lambda: sum(has_printed(job, "loss=") for job in jobs.glob("*")) == 2, 60)
    assert len(list(jobs.iterdir())) == 2
    with serving(tmp_path, "--s3", "memory") as api:
        found, trained = results(api, "tuned")
    assert found["HyperParameterTuningJobStatus"] == "Completed"
    reasons = [job.get("FailureReason", "").partition(";")[0] for job in trained]
    assert sorted(reasons) == ["", *2 * ["InternalServerError: the server's container was stopped"]]


def test_a_server_whose_container_ends_creates_no_job_that_would_end_with_it(tmp_path):
    saves = f"lambda *_: [time.sleep(0.1) for _ in iter(lambda: os.path.exists({str(tmp_path / 'go')!r}), True)] and sys.exit()"
    script = WAITS.replace("lambda *_: sys.exit(0)", saves).replace("import signal", "import os, signal")
    with contained(tmp_path) as api:
        name = api.start(script)
        until(lambda: has_printed(tmp_path / "data" / "jobs" / name, "step 1"), 60)
        (server,) = processes.children(api.server.process.pid)
        os.kill(server, signal.SIGTERM)
        client = api.client("sagemaker", config=Config(retries={"total_max_attempts": 1}))
        with pytest.raises(ClientError, match="This server ends; try again"):
            until(lambda: client.create_training_job(**api.request("pass")) and time.sleep(0.1))
        assert client.list_training_jobs()["TrainingJobSummaries"]
        (tmp_path / "go").touch()


def test_the_first_process_of_a_container_reaps_the_agents_of_its_jobs(tmp_path):
    with contained(tmp_path) as api:
        api.run("print('ran')")
        (server,) = processes.children(api.server.process.pid)
        namespace = processes.namespace(server)
        # The server and what forks its agents.
        until(lambda: len(processes.members(namespace)) == len([server, *processes.children(server)]) == 2, 30)


def test_an_agent_that_has_not_recorded_itself_yet_is_waited_for(tmp_path):
    store = JobStore(tmp_path)
    job = Job(parse_request(request_for("job", source="file:///source")), "arn", "us-east-1", sys.executable, 120.0)
    with store.create(job, starting_state("job", "arn", 0.0)):
        assert _terminate_agents(store)
    assert not _terminate_agents(store)
