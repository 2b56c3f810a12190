"""A fresh process to CreateTrainingJob on the wire, against the same calls in plain boto3 and the SageMaker SDK v2."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.benchmarks.figures import Figure, in_turn
from tests.references import environment

ROLE = "arn:aws:iam::123456789012:role/training"
FIT = f"""
TensorFlow(entry_point="train.py", source_dir="code", role={ROLE!r}, image_uri="image:1", instance_count=2,
           instance_type="ml.p3.2xlarge", output_path="s3://bucket/output", distribution={{"mpi": {{"enabled": True}}}},
           hyperparameters={{"epochs": 60}}).fit({{"train": "s3://bucket/train"}}, wait=False)
"""
OURS = f"from scriptmode import TensorFlow{FIT}"
THEIRS = f"from sagemaker.tensorflow import TensorFlow{FIT}"
PLAIN = f"""
import boto3
boto3.client("s3").put_object(Bucket="bucket", Key="output/sourcedir.tar.gz", Body=b"x" * 500)
boto3.client("sagemaker").create_training_job(
    TrainingJobName="job", RoleArn={ROLE!r}, HyperParameters={{"epochs": "60"}},
    AlgorithmSpecification={{"TrainingImage": "image:1", "TrainingInputMode": "File"}},
    OutputDataConfig={{"S3OutputPath": "s3://bucket/output"}},
    ResourceConfig={{"InstanceType": "ml.p3.2xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30}},
    StoppingCondition={{"MaxRuntimeInSeconds": 86400}})
"""
JOB = json.dumps({"TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job"}).encode()


class Endpoint(ThreadingHTTPServer):
    """Every AWS service on loopback, and the way out to the others: it notes who is called and answers the least."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        #: The calls of one process in the order of arrival, and the monotonic time at which its job arrived.
        self.calls: list[str] = []
        self.created = 0.0
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm the second would wait for the client.
    disable_nagle_algorithm = True
    server: Endpoint

    def _answer(self, call: str, status: int, body: bytes = b"") -> None:
        self.server.calls.append(call)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        name = self.headers.get("X-Amz-Target", self.path).rpartition(".")[2]
        if name == "CreateTrainingJob":
            self.server.created = time.monotonic()
        self._answer(name, 200, JOB)

    def do_PUT(self) -> None:
        self._answer("PutObject", 200)

    def do_HEAD(self) -> None:
        self._answer("HeadObject", 404)

    def do_GET(self) -> None:
        self._answer(f"GET {self.path}", 404)

    def do_CONNECT(self) -> None:
        """A host that the endpoint setting does not move: it is not reached, only counted."""
        self._answer(self.path, 403)

    def log_message(self, *_arguments: object) -> None:
        pass


def run(folder: str) -> list[Figure]:
    code = Path(folder) / "code"
    code.mkdir()
    (code / "train.py").write_text("print('training')\n")
    reference = environment("sagemaker<3")
    endpoint = Endpoint()
    calls: dict[str, int] = {}

    def submit(label: str, python: str, program: str) -> float:
        endpoint.calls = []
        began = time.monotonic()
        done = subprocess.run(
            [python, "-c", program], check=False, timeout=600, cwd=folder, env=variables(endpoint, folder),
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        calls[label] = len(endpoint.calls)
        return (endpoint.created - began) * 1000

    ours, plain, theirs = in_turn(
        5,
        lambda: submit("ours", sys.executable, OURS),
        lambda: submit("plain", sys.executable, PLAIN),
        lambda: submit("theirs", str(reference / "python"), THEIRS),
    )
    endpoint.shutdown()
    return [
        Figure("a fresh process to CreateTrainingJob on the wire", ours, "ms"),
        Figure("the same calls in plain boto3", plain, "ms"),
        Figure("the same with sagemaker v2", theirs, "ms"),
        Figure("calls of fit(wait=False)", calls["ours"], "", 3),
        Figure("the same with sagemaker v2, its reports to its makers included", calls["theirs"], ""),
    ]


def variables(endpoint: Endpoint, folder: str) -> dict[str, str]:
    """Nothing of the caller's environment; all AWS services and all of the web are the endpoint's."""
    return {
        "PATH": "/usr/bin:/bin", "HOME": folder, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint.url, "AWS_MAX_ATTEMPTS": "1",
        "HTTPS_PROXY": endpoint.url,
    }  # fmt: skip
