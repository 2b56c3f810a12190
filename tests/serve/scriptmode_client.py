"""A program of scriptmode for Amazon SageMaker. Run with an endpoint in AWS_ENDPOINT_URL."""

import os
import sys
from pathlib import Path

import boto3

from scriptmode import Estimator, TrainingJobFailed

SCRIPT = """
import sys
print("own loss=0.5")
raise SystemExit(7 if "--fail" in sys.argv else 0)
"""


def main(folder):
    boto3.client("s3").create_bucket(Bucket="own-bucket")
    # A site's proxy, at which nothing listens, is not asked for a server of this machine.
    os.environ["http_proxy"] = "http://127.0.0.1:9"
    (folder / "train.py").write_text(SCRIPT)
    estimator = Estimator(
        image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14-cpu-py310",
        role="arn:aws:iam::111122223333:role/test", instance_count=1, instance_type="ml.m5.large",
        entry_point="train.py", source_dir=str(folder), output_path="s3://own-bucket/out",
        code_location="s3://own-bucket/code",
    )  # fmt: skip
    job = estimator.fit()
    print("FOUND", job.status, job.describe()["ResourceConfig"]["InstanceType"])
    estimator.hyperparameters = {"fail": True}
    try:
        estimator.fit()
    except TrainingJobFailed as error:
        print("FOUND", error.failure.exit_code)


main(Path(sys.argv[1]))
