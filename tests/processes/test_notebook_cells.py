"""Opening cells of notebooks for sagemaker v2, with their imports changed, on a machine without an AWS account.

The cells have the shapes of those in AWS's TensorFlow notebooks; their texts are this project's own.
"""

import json
import tarfile
from pathlib import Path

import pytest

SCRIPT = """
import argparse, json, os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
parser.add_argument("--epochs", type=int, default=1)
arguments = parser.parse_args()
files = {}
for name in json.loads(os.environ["SM_CHANNELS"]):
    folder = Path(os.environ["SM_CHANNEL_" + name.upper()])
    files[name] = sorted(path.name for path in folder.rglob("*") if path.is_file())
print("accuracy =", 0.25 * arguments.epochs)
if Path("/opt/ml/checkpoints").is_dir():
    Path("/opt/ml/checkpoints/last").write_text("step 7")
Path(os.environ["SM_MODEL_DIR"], "files.json").write_text(json.dumps([files, arguments.model_dir]))
"""

#: Upload a directory, train on two hosts, fetch the model: AWS's script mode notebooks.
SCRIPT_MODE = """
import os

import scriptmode as sagemaker
from scriptmode import get_execution_role

sagemaker_session = sagemaker.Session()
role = get_execution_role()
region = sagemaker_session.boto_session.region_name
bucket = sagemaker_session.default_bucket()
prefix = "sagemaker/DEMO-tensorflow"
# ---
os.makedirs("data/train", exist_ok=True)
for number in range(3):
    with open(f"data/train/{number}.txt", "w") as file:
        file.write("image")
inputs = sagemaker_session.upload_data(path="data", bucket=bucket, key_prefix=prefix + "/data")
print(inputs)
# ---
from scriptmode import TensorFlow

mnist_estimator = TensorFlow(
    entry_point="train.py",
    source_dir="src",
    role=role,
    instance_count=2,
    instance_type="local_process",
    hyperparameters={"epochs": 2},
    metric_definitions=[{"Name": "accuracy", "Regex": "accuracy = ([0-9.]+)"}],
    output_path=f"s3://{bucket}/{prefix}/output",
    distribution={"parameter_server": {"enabled": False}},
)
# ---
mnist_estimator.fit(inputs)
# ---
from scriptmode.aws import S3Downloader

job_name = mnist_estimator.latest_training_job.name
found = S3Downloader.download(mnist_estimator.model_data, "model")
listed = sagemaker_session.list_s3_files(bucket, f"{prefix}/output/{job_name}")
expected = {"training": ["0.txt", "1.txt", "2.txt"]}
"""

#: S3Uploader, TrainingInput by URIs made of the bucket's name, checkpoints, model_dir, the session passed on, attach.
UPLOADER = """
import boto3
import scriptmode as sagemaker
from scriptmode.aws import S3Downloader, S3Uploader

boto_session = boto3.Session(region_name="us-west-2")
sess = sagemaker.Session(boto_session=boto_session)
role = sagemaker.get_execution_role(sagemaker_session=sess)
bucket, region, account = sess.default_bucket(), sess.boto_region_name, sess.account_id()
assert region == "us-west-2"
s3_prefix = f"s3://{bucket}/tf-boston"
# ---
with open("x_train.csv", "w") as file:
    file.write("1,2")
train = S3Uploader.upload("x_train.csv", f"{s3_prefix}/train")
S3Uploader.upload_string_as_file_body("3,4", desired_s3_uri=f"{s3_prefix}/test/x_test.csv", sagemaker_session=sess)
print(S3Downloader.list(s3_prefix))
# ---
from scriptmode import TensorFlow, TrainingInput

estimator = TensorFlow(
    entry_point="src/train.py",
    model_dir=f"{s3_prefix}/models/1",
    role=role,
    instance_count=1,
    instance_type="local_process",
    sagemaker_session=sess,
    hyperparameters={"epochs": 3},
    output_path=f"{s3_prefix}/output",
    checkpoint_s3_uri=f"{s3_prefix}/checkpoints",
    base_job_name="tf-boston",
)
# ---
inputs = {
    "train": TrainingInput(s3_data=train, content_type="text/csv"),
    "test": TrainingInput(s3_data=f"{s3_prefix}/test", input_mode="FastFile"),
}
estimator.fit(inputs, wait=False)
# ---
job_name = estimator.latest_training_job.name
attached = TensorFlow.attach(job_name, sagemaker_session=sess)
attached.latest_training_job.wait()
assert attached.model_data == estimator.model_data
assert sess.read_s3_file(bucket, "tf-boston/checkpoints/last") == "step 7"
found = sess.download_data("model", bucket=bucket, key_prefix=f"tf-boston/output/{job_name}/output/model.tar.gz")
listed = sess.list_s3_files(bucket, f"tf-boston/output/{job_name}")
expected = {"train": ["x_train.csv"], "test": ["x_test.csv"]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [SCRIPT_MODE, UPLOADER], ids=["script mode", "uploader"])
def test_opening_cells_run_without_an_account(notebook, tmp_path, monkeypatch, no_credentials):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "jobs here"))
    Path("src").mkdir()
    Path("src/train.py").write_text(SCRIPT)
    namespace = {}
    first, *others = notebook.split("# ---\n")
    with pytest.warns(UserWarning, match="there are no AWS credentials: this session's bucket is a directory"):
        exec(first, namespace)
    for cell in others:
        exec(cell, namespace)
    assert namespace["found"] == ["model/model.tar.gz"]
    assert namespace["listed"][-1].endswith(f"{namespace['job_name']}/output/model.tar.gz")
    job = namespace["sagemaker"].TrainingJob.attach(namespace["job_name"])
    files, model_dir = _content(Path("model/model.tar.gz"))
    assert files == namespace["expected"]
    assert model_dir.startswith(f"file://{tmp_path}/jobs here/bucket/")
    assert job.status == "Completed"


def _content(archive):
    """What the script left in its model."""
    with tarfile.open(archive) as tar:
        return json.load(tar.extractfile("files.json"))
