"""A running server, its clients, and requests for it."""

import os
import subprocess
import textwrap
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from fakes.archives import packed
from fakes.local_jobs import ENDED, request_for
from fakes.output_shapes import check_answers
from fakes.processes import until

from scriptmode.testing import server as running_server

TENSORFLOW = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310"


@dataclass
class Api:
    """The clients of one server, and jobs that it runs."""

    server: object
    folder: object
    names: list = field(default_factory=list)

    def client(self, service, **settings):
        import boto3

        return boto3.Session("test", "test", region_name="us-east-1").client(
            service, endpoint_url=self.server.url, **settings
        )

    @property
    def sagemaker(self):
        return check_answers(self.client("sagemaker"))

    @property
    def logs(self):
        return check_answers(self.client("logs"))

    def request(self, script, name=None, **changes):
        name = name or f"job-{len(self.names)}-{time.time_ns()}"
        self.names.append(name)
        archive = self.folder / f"{name}.tar.gz"
        archive.write_bytes(packed({"train.py": textwrap.dedent(script)}))
        places = {"source": f"file://{archive}", "output": f"file://{self.folder}/out"}
        request = request_for(name, max_run=60, **places)
        request["AlgorithmSpecification"]["TrainingImage"] = TENSORFLOW
        request["ResourceConfig"]["InstanceType"] = "ml.m5.xlarge"
        return {**request, **changes}

    def start(self, script, **changes):
        request = self.request(script, **changes)
        self.sagemaker.create_training_job(**request)
        return request["TrainingJobName"]

    def wait(self, name):
        def ended():
            found = self.sagemaker.describe_training_job(TrainingJobName=name)
            return found["TrainingJobStatus"] in ENDED and found

        return until(ended)

    def run(self, script, **changes):
        return self.wait(self.start(script, **changes))

    def execute(self, *command, **variables):
        """Run a client to its end in an environment that leads it to the server; return its output."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_") or "BUNDLE" in name}
        done = subprocess.run(
            list(map(str, command)), env={**kept, **self.server.environment, **variables}, capture_output=True,
            text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def close(self):
        """Stop what runs."""
        sagemaker = self.client("sagemaker")
        for name in self.names:
            try:
                sagemaker.stop_training_job(TrainingJobName=name)
            except sagemaker.exceptions.ClientError:
                continue
            self.wait(name)


@contextmanager
def serving(folder, *options, environment=None):
    """Run a server whose jobs may read and write ``folder``."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    with running_server("--allow", str(folder), *options, data_dir=data, environment=environment) as found:
        api = Api(found, folder)
        yield api
        api.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server whose S3 is on disk, as users start it."""
    with serving(tmp_path_factory.mktemp("clients")) as found:
        yield found


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """One server for all tests of a module: their jobs have names of their own."""
    with serving(tmp_path_factory.mktemp("served"), "--s3", "memory") as found:
        yield found
