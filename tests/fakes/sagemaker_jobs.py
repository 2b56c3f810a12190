"""Estimators and training jobs of Amazon SageMaker, on the fake."""

from scriptmode import Estimator
from scriptmode.testing import FakeSageMaker

ROLE = "arn:aws:iam::123456789012:role/training"


def sagemaker_estimator(code, sagemaker_session=None, *, kind=Estimator, **arguments):
    """Make an estimator of the script in ``code``, for an instance of Amazon SageMaker."""
    defaults = {"role": ROLE, "image_uri": "img:1", "instance_type": "ml.m5.large", "entry_point": "train.py"}
    return kind(sagemaker_session=sagemaker_session, **{**defaults, "source_dir": code, **arguments})


def started(life, *, instance_count=1, fake=None, **arguments):
    """Start one job that lives ``life``; give the fake and the job."""
    fake = fake or FakeSageMaker("eu-west-1")
    fake.expect(life)
    made = Estimator(
        "img:1", ROLE, instance_count, "ml.m5.large", output_path="s3://out/jobs", sagemaker_session=fake, **arguments
    )
    fake.buckets["out"] = fake.account
    return fake, made.fit(wait=False, job_name="job-1")
