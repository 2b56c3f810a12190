"""``scriptmode serve`` in the cluster, by its own manifests and with no other rights, used by boto3 from outside."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import time
from base64 import b64decode
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import boto3
import pytest
import yaml
from fakes.archives import packed
from fakes.local_jobs import COUNTS, ENDED, request_for
from fakes.processes import until
from kubernetes.configuration import MACHINE_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]
NAMESPACE = "ml"
#: The objects of jobs.
OBJECTS = ("pods,services,secrets", "--selector=scriptmode/job", f"--namespace={NAMESPACE}")
SCRIPT = """
    import os, socket
    from pathlib import Path
    hosts = os.environ["SM_HOSTS"]
    print("read", Path(os.environ["SM_CHANNEL_TRAIN"], "words").read_text(), "on", os.environ["SM_CURRENT_HOST"])
    socket.gethostbyname("algo-2")
    Path(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]).write_text("weights")
"""


@pytest.fixture(scope="module")
def service(cluster, tmp_path_factory):
    """The server of the printed manifests; its image is that of this machine, and its volume a directory of it.

    It and its jobs are restricted; those of the guide are not.
    """
    command = [sys.executable, "-m", "scriptmode", "serve", "manifests", f"--namespace={NAMESPACE}"]
    data = tmp_path_factory.mktemp("data")
    # As the cluster's own volumes are by fsGroup.
    os.chown(data, 0, 1000)
    data.chmod(0o2775)
    printed = subprocess.run([*command, f"--image={MACHINE_IMAGE}", "--restricted"], check=True, stdout=subprocess.PIPE)
    objects = list(yaml.safe_load_all(printed.stdout))
    stateful_set = next(each["spec"] for each in objects if each["kind"] == "StatefulSet")
    # The cluster has no storage class.
    del stateful_set["volumeClaimTemplates"]
    stateful_set["template"]["spec"]["volumes"].append({"name": "data", "hostPath": {"path": str(data)}})
    cluster.apply(*objects)
    try:
        cluster.kubectl("rollout", "status", "statefulset/scriptmode", f"--namespace={NAMESPACE}", "--timeout=300s")
        with forwarded(cluster) as url:
            secret = cluster.get("secret", "scriptmode", f"--namespace={NAMESPACE}")
            key = next(iter(json.loads(b64decode(secret["data"]["keys.json"])).items()))
            session = boto3.Session(*key, region_name="us-east-1")
            s3 = session.client("s3", endpoint_url=url)
            s3.create_bucket(Bucket="bucket")
            s3.put_object(Bucket="bucket", Key="data/words", Body=b"from S3")
            s3.put_object(Bucket="bucket", Key="source.tar.gz", Body=packed({"train.py": textwrap.dedent(SCRIPT)}))
            yield partial(session.client, endpoint_url=url)
    finally:
        sys.stderr.write(cluster.kubectl("logs", "scriptmode-0", f"--namespace={NAMESPACE}", check=False).stdout)
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@contextmanager
def forwarded(cluster):
    """Yield the URL at which this machine reaches the Service."""
    command = ["kubectl", "port-forward", f"--namespace={NAMESPACE}", "service/scriptmode", ":4580"]
    with subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{re.search(r'127.0.0.1:([0-9]+)', process.stdout.readline())[1]}"
        finally:
            process.terminate()


def in_cluster(instance_type, hosts=1):
    """Return a request for hosts of the cluster."""
    name = f"in-cluster-{time.time_ns()}"
    request = request_for(name, hosts=hosts, source="s3://bucket/source.tar.gz", output="s3://bucket/out")
    request["AlgorithmSpecification"]["TrainingImage"] = MACHINE_IMAGE
    request["ResourceConfig"]["InstanceType"] = instance_type
    return request


def ended(sagemaker, name):
    """Return the description of a job that has ended."""
    found = sagemaker.describe_training_job(TrainingJobName=name)
    return found if found["TrainingJobStatus"] in ENDED else None


def test_boto3_trains_on_pods_by_the_service_with_the_least_rights(service, cluster):
    sagemaker, s3, logs = (service(name) for name in ("sagemaker", "s3", "logs"))
    request = in_cluster("ml.c5.xlarge", hosts=2)
    name = request["TrainingJobName"]
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data/", "S3DataDistributionType": "FullyReplicated"}
    request["InputDataConfig"] = [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]
    sagemaker.create_training_job(**request)
    found = until(lambda: ended(sagemaker, name), 300)
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    assert found["ResourceConfig"]["InstanceType"] == "ml.c5.xlarge"
    streams = logs.describe_log_streams(logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{name}/")
    assert len(streams["logStreams"]) == 2
    for host in ("algo-1", "algo-2"):
        stream = next(each["logStreamName"] for each in streams["logStreams"] if host in each["logStreamName"])
        events = logs.get_log_events(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream)["events"]
        assert f"read from S3 on {host}" in [each["message"] for each in events]
    model = found["ModelArtifacts"]["S3ModelArtifacts"].partition("bucket/")[2]
    archive = s3.get_object(Bucket="bucket", Key=model)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert {Path(each).name for each in opened.getnames()} >= {"algo-1", "algo-2"}
    # Nothing is left of the job, and no right was missing.
    until(lambda: not cluster.get(*OBJECTS)["items"])


@pytest.mark.parametrize(
    "verb", ["get secrets", "list secrets", "delete services", "create pods --subresource=exec", "list nodes"]
)
def test_the_service_may_do_nothing_else(service, cluster, verb):
    who = f"--as=system:serviceaccount:{NAMESPACE}:scriptmode"
    done = cluster.kubectl("auth", "can-i", *verb.split(), who, f"--namespace={NAMESPACE}", check=False)
    assert done.stdout.strip() == "no"


def test_an_instance_type_with_gpus_asks_for_gpus(service, cluster):
    sagemaker = service("sagemaker")
    request = in_cluster("ml.p3.8xlarge")
    name = request["TrainingJobName"]
    sagemaker.create_training_job(**request)
    selector = ("pods", "--selector=scriptmode/job", f"--namespace={NAMESPACE}")
    pod = until(lambda: next(iter(cluster.get(*selector)["items"]), None), 60)
    train = next(each for each in pod["spec"]["containers"] if each["name"] == "train")
    assert train["resources"]["limits"]["nvidia.com/gpu"] == "4"

    def transitions():
        found = sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatusTransitions"]
        return next((each for each in found if "Insufficient nvidia.com/gpu" in each["StatusMessage"]), None)

    assert until(transitions, 60)
    sagemaker.stop_training_job(TrainingJobName=name)


def lines_of(logs, name):
    """Return the lines of a job's log."""
    group = "/aws/sagemaker/TrainingJobs"
    streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/")["logStreams"]
    events = [
        logs.get_log_events(logGroupName=group, logStreamName=each["logStreamName"], startFromHead=True)["events"]
        for each in streams
    ]
    return [event["message"] for found in events for event in found]


def test_the_jobs_of_a_pod_of_the_service_that_is_deleted_end_with_that_reason_or_go_on_with_retries(service, cluster):
    source = "s3://bucket/counts.tar.gz"
    service("s3").put_object(Bucket="bucket", Key="counts.tar.gz", Body=packed({"train.py": textwrap.dedent(COUNTS)}))
    request = in_cluster("ml.c5.xlarge")
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps(source)
    request["CheckpointConfig"] = {"S3Uri": "s3://bucket/checkpoints", "LocalPath": "/opt/ml/checkpoints"}
    request["RetryStrategy"] = {"MaximumRetryAttempts": 2}
    name = request["TrainingJobName"]
    service("sagemaker").create_training_job(**request)
    once = {**request, "TrainingJobName": f"{name}-once"}
    del once["RetryStrategy"], once["CheckpointConfig"]
    service("sagemaker").create_training_job(**once)
    logs = service("logs")
    until(lambda: "step 1" in lines_of(logs, name), 120)
    until(lambda: "step 1" in lines_of(logs, once["TrainingJobName"]), 120)
    cluster.kubectl("delete", "pod", "scriptmode-0", f"--namespace={NAMESPACE}")
    cluster.kubectl("rollout", "status", "statefulset/scriptmode", f"--namespace={NAMESPACE}", "--timeout=300s")
    with forwarded(cluster) as url:
        sagemaker, logs = (service(each, endpoint_url=url) for each in ("sagemaker", "logs"))
        reason = until(lambda: ended(sagemaker, once["TrainingJobName"]), 300)["FailureReason"]
        found = until(lambda: ended(sagemaker, name), 300)
        assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
        lines = lines_of(logs, name)
        interrupted = [each for each in found["SecondaryStatusTransitions"] if each["Status"] == "Interrupted"]
    advice = "to have such a job started again, give it max_retry_attempts, or use_spot_instances=True and max_wait"
    assert reason == f"InternalServerError: the server's pod was stopped; {advice}"
    assert [each["StatusMessage"] for each in interrupted] == ["the server's pod was stopped"]
    # It goes on from the checkpoint that the script saved last, and repeats no step.
    assert any(line.startswith("from ") and line != "from 0" for line in lines)
    steps = [line for line in lines if line.startswith("step ")]
    assert sorted(steps) == [f"step {number}" for number in range(10)]
    until(lambda: not cluster.get(*OBJECTS)["items"])
