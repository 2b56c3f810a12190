"""A program of the SageMaker Python SDK v3. Run with an endpoint in AWS_ENDPOINT_URL."""

import json
import logging
import sys
import tarfile
from pathlib import Path

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.training.configs import Compute, InputData, SourceCode
from sagemaker.train import ModelTrainer

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14-cpu-py310"
SCRIPT = """
import json, os, pathlib
words = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "words.txt").read_text()
print("words", words, "epochs", json.loads(os.environ["SM_HPS"])["epochs"])
pathlib.Path(os.environ["SM_MODEL_DIR"], "weights").write_text("1")
"""


def main(folder):
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    boto3.client("s3").create_bucket(Bucket="v3-bucket")
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(SCRIPT)
    (folder / "words.txt").write_text("hello")
    session = Session(default_bucket="v3-bucket")
    trainer = ModelTrainer(
        sagemaker_session=session,
        role="arn:aws:iam::000000000000:role/test",
        training_image=IMAGE,
        source_code=SourceCode(source_dir=str(folder / "code"), entry_script="train.py"),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
        hyperparameters={"epochs": 3},
        base_job_name="v3",
    )
    trainer.train(input_data_config=[InputData(channel_name="train", data_source=str(folder / "words.txt"))])
    job = trainer._latest_training_job
    bucket, _, key = job.model_artifacts.s3_model_artifacts.removeprefix("s3://").partition("/")
    boto3.client("s3").download_file(bucket, key, str(folder / "model.tar.gz"))
    with tarfile.open(folder / "model.tar.gz") as tar:
        names = tar.getnames()
    print("FOUND", json.dumps([job.training_job_status, names]))


main(Path(sys.argv[1]))
