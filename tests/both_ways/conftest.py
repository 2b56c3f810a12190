"""The two ways to the training service of this machine, which have the same public API."""

import contextlib
import os
from dataclasses import dataclass, field

import boto3
import pytest
from fakes.local_jobs import ENDED
from fakes.processes import until

from scriptmode import Estimator, Session, TrainingJob
from scriptmode.testing import server

SAGEMAKERS = ("SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE")
#: Arguments of estimators.
ARGUMENTS = {
    "local": {"instance_type": "local_process"},
    "sagemaker": {
        "instance_type": "ml.m5.xlarge",
        "image_uri": "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310",
        "role": "arn:aws:iam::111122223333:role/test",
        "output_path": "s3://both-ways/out",
    },
}


@dataclass(frozen=True)
class Way:
    """One way: the name of its platform, as `TrainingJob.attach` takes it, and estimators of small scripts."""

    platform: str
    folder: object = field(repr=False)

    @property
    def is_served(self):
        return self.platform == "sagemaker"

    @property
    def arguments(self):
        """What an estimator needs beside its script."""
        return ARGUMENTS[self.platform]

    def estimator(self, script, **arguments):
        (self.folder / "train.py").write_text(script)
        return Estimator(entry_point=str(self.folder / "train.py"), **self.arguments, **arguments)

    def upload(self, folder):
        """Store the files of a folder as an input's; return their URI."""
        session = Session(local_mode=not self.is_served)
        return session.upload_data(folder, "both-ways" if self.is_served else None, key_prefix=folder.name)

    def close(self):
        """Stop what a test left running."""
        left = [
            TrainingJob.attach(row["TrainingJobName"], platform=self.platform)
            for row in TrainingJob.list(self.platform)
            if row["TrainingJobStatus"] not in ENDED
        ]
        for job in left:
            job.stop()
        until(lambda: all(job.ended for job in left))


@pytest.fixture(scope="module", params=ARGUMENTS)
def way(request, tmp_path_factory):
    """The environment of a user, and where the jobs are served the variables of the server's clients alone."""
    folder = tmp_path_factory.mktemp("both ways")
    (folder / "scripts").mkdir()
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        for name in [name for name in os.environ if name.startswith("AWS_") and "BUNDLE" not in name]:
            patch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", *SAGEMAKERS):
            (folder / name).touch()
            patch.setenv(name, str(folder / name))
        patch.setenv("SCRIPTMODE_DATA_DIR", str(folder / "own data"))
        if request.param == "sagemaker":
            running = stack.enter_context(server(data_dir=folder / "data of the server"))
            for name, value in running.environment.items():
                patch.setenv(name, value)
            boto3.client("s3").create_bucket(Bucket="both-ways")
            # A site's proxy, at which nothing listens, is not asked for a server of this machine.
            patch.setenv("http_proxy", "http://127.0.0.1:9")
        yield stack.enter_context(contextlib.closing(Way(request.param, folder / "scripts")))
