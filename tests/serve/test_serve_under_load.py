"""`scriptmode serve` when it or what forks its agents is killed, and when many clients use it at once, some of them slow."""

import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from fakes.processes import until
from serve.conftest import ENDED, serving

from scriptmode_local._store.job_store import JobStore
from scriptmode_runtime._processes import proc

pytestmark = pytest.mark.slow


def create_again(api, request):
    try:
        api.sagemaker.create_training_job(**request)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "created"


@pytest.mark.long
def test_a_server_that_is_killed_amid_calls_leaves_no_job_half_made(tmp_path):
    answered = []
    with serving(tmp_path, "--s3", "memory") as api:
        requests = [api.request("print('ran')") for _ in range(12)]
        client = api.client("sagemaker", config=Config(retries={"total_max_attempts": 1}))

        def create(request):
            try:
                answered.append(client.create_training_job(**request)["TrainingJobArn"])
            except (BotoCoreError, ClientError, KeyError):
                # boto3 takes the headers of an answer that the kill cut off for an answer of nothing.
                return

        with ThreadPoolExecutor(4) as threads:
            found = [threads.submit(create, request) for request in requests]
            until(lambda: len(answered) > 2)
            api.server.process.send_signal(signal.SIGKILL)
            for each in found:
                each.result()
        api.names.clear()
    with serving(tmp_path, "--s3", "memory") as api:
        made = {
            job["TrainingJobArn"] for job in api.sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
        }
        assert set(answered) <= made
        lost = 0
        for arn in made:
            name = arn.rpartition("/")[2]
            ended = api.wait(name)
            if arn not in answered and "agent never started" in ended.get("FailureReason", ""):
                # Killed between the two: nothing ran, and the same call creates the job.
                lost += 1
                continue
            assert ended["TrainingJobStatus"] == "Completed", ended.get("FailureReason")
            stream = f"{name}/"
            logs = api.logs.filter_log_events(
                logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=stream, filterPattern="ran"
            )
            assert [event["message"] for event in logs["events"] if "scriptmode" not in event["message"]] == ["ran"]
        # A client that got no answer repeats the call: the job is created once.
        again = [create_again(api, request) for request in requests]
        assert again.count("created") == len(requests) - len(made) + lost
        assert set(again) <= {"created", "ResourceInUse"}


def test_a_hundred_clients_follow_jobs_beside_a_hundred_slow_ones(tmp_path):
    with serving(tmp_path, "--s3", "memory") as api:
        names = [api.start("import time; print('up', flush=True); time.sleep(600)") for _ in range(3)]
        address = urlsplit(api.server.url)
        slow = [socket.create_connection((address.hostname, address.port)) for _ in range(100)]
        for each in slow:
            each.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        problems = []
        # Each thread has a connection of its own; a hundred clients of boto3 take half a minute to create.
        client = api.client("sagemaker", config=Config(max_pool_connections=100))

        def follow(number):
            try:
                name = names[number % len(names)]
                for _ in range(3):
                    assert client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] not in ENDED
                    assert client.list_training_jobs()["TrainingJobSummaries"]
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=follow, args=(number,)) for number in range(100)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for each in slow:
            each.close()
        assert problems == []


def fork_server(server):
    return next(pid for pid, each in proc.processes().items() if each.parent == server and each.running)


def test_jobs_outlive_what_forked_their_agents_and_the_server(tmp_path):
    store = JobStore(tmp_path / "data")
    with serving(tmp_path, "--s3", "memory") as api:
        name = api.start("import time; print('up', flush=True); time.sleep(600)")
        agent = until(lambda: store.folder(name).read_processes().get("agent"))
        assert agent == proc.identify(agent.pid)
        assert os.getsid(agent.pid) not in map(os.getsid, (os.getpid(), api.server.process.pid))
        os.kill(fork_server(api.server.process.pid), signal.SIGKILL)
        assert api.run("print('ran')")["TrainingJobStatus"] == "Completed"
        until(lambda: store.folder(name).read_state().secondary == "Training")
        last = proc.identify(fork_server(api.server.process.pid))
        api.server.process.send_signal(signal.SIGKILL)
        until(lambda: not proc.is_running(last))
        api.names.clear()
    with serving(tmp_path, "--s3", "memory") as api:
        assert proc.is_running(agent)
        api.sagemaker.stop_training_job(TrainingJobName=name)
        assert api.wait(name)["TrainingJobStatus"] == "Stopped"
