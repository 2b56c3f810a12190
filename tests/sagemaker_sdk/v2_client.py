"""A program of the SageMaker Python SDK v2, unmodified: what its users write. Run with an endpoint in AWS_ENDPOINT_URL."""

import json
import sys
import time
from pathlib import Path

import boto3
import sagemaker
from sagemaker.analytics import TrainingJobAnalytics
from sagemaker.estimator import Estimator
from sagemaker.tensorflow import TensorFlow

SCRIPT = """
import json, os
print("cluster", sorted(json.loads(os.environ["TF_CONFIG"])["cluster"]))
print("words", open(os.environ["SM_CHANNEL_TRAIN"] + "/words.txt").read(), "loss=0.25")
open(os.environ["SM_MODEL_DIR"] + "/weights", "w").write("1")
"""


sleep = time.sleep
#: v2 looks every 5 to 30 s; the server is on this machine.
time.sleep = lambda seconds: sleep(min(seconds, 1))


def main(folder):
    (folder / "train.py").write_text(SCRIPT)
    (folder / "words.txt").write_text("hello")
    session = sagemaker.Session(boto3.Session(region_name="us-east-1"), default_bucket="v2-bucket")
    estimator = TensorFlow(
        entry_point="train.py", source_dir=str(folder), role="arn:aws:iam::000000000000:role/test", instance_count=2,
        instance_type="ml.p3.2xlarge", framework_version="2.14", py_version="py310", hyperparameters={"epochs": 1},
        distribution={"parameter_server": {"enabled": True}}, sagemaker_session=session,
        metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    )  # fmt: skip
    estimator.fit({"train": session.upload_data(str(folder / "words.txt"), key_prefix="in")}, logs="All")
    attached = TensorFlow.attach(estimator.latest_training_job.name, sagemaker_session=session)
    files = session.download_data(str(folder), *estimator.model_data[len("s3://") :].split("/", 1))
    failing = Estimator("example.com/unknown:1", estimator.role, 1, "ml.m5.large", sagemaker_session=session)
    try:
        failing.fit(wait=True)
    except sagemaker.exceptions.UnexpectedStatusException as error:
        failure = [str(error), error.actual_status, error.allowed_statuses]
    name = estimator.latest_training_job.name
    metrics = TrainingJobAnalytics(name, metric_names=["loss"], sagemaker_session=session).dataframe()
    found = {
        "image": estimator.training_image_uri(),
        "attached": [attached.hyperparameters()["epochs"], attached.instance_type, attached.model_data],
        "model": [estimator.model_data, len(files)],
        "failure": failure,
        "metrics": metrics[["metric_name", "value"]].values.tolist(),
    }
    print("FOUND " + json.dumps(found))


main(Path(sys.argv[1]))
