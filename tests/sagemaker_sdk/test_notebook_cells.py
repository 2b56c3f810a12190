"""Estimator cells as AWS's notebooks have them run on this machine, without an account, by the changed imports or alias.

tests/public_programs/README.md names the notebooks whose cells have these shapes; their texts are this project's own.
Beside the imports the cells' variable for the instance type is changed, as the notebooks change it for local mode.
"""

import json
import re
import textwrap
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from scriptmode._core.spec.hosts import LOCAL_ACCOUNT

pytestmark = pytest.mark.slow

#: The changes of the guide "Coming from sagemaker v2".
IMPORTS = {
    r"^import sagemaker$": "import scriptmode as sagemaker",
    r"^from sagemaker\.s3 import": "from scriptmode.aws import",
    r"^from sagemaker(\.\w+)* import": "from scriptmode import",
}
#: A program that reads what the cells give it, in place of the notebooks' networks.
SCRIPT = """
    import argparse, json, os

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", "--batch-size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--model_dir", type=str)
    args, unknown = parser.parse_known_args()
    channels = json.loads(os.environ["SM_CHANNELS"])
    host, group = os.environ["SM_CURRENT_HOST"], os.environ.get("SM_CURRENT_INSTANCE_GROUP", "")
    for name in channels:
        path = os.environ["SM_CHANNEL_" + name.upper()]
        print("channel", name, sorted(os.listdir(path)))
    print("on", host, "of", group or "one group", "epochs", args.epochs, "batch", args.batch_size, "rest", unknown)
    restored = sorted(os.listdir("/opt/ml/checkpoints")) if os.path.isdir("/opt/ml/checkpoints") else []
    print("restored", restored, "model_dir", args.model_dir)
    if os.path.isdir("/opt/ml/checkpoints"):
        open(f"/opt/ml/checkpoints/epoch-{args.epochs}", "w").close()
    os.makedirs("/opt/ml/model/1", exist_ok=True)
    open("/opt/ml/model/1/saved_model.pb", "w").write("model")
"""


@pytest.fixture
def notebook(tmp_path, monkeypatch, no_credentials):
    """A function that runs a cell and returns its variables, with the texts of its warnings as ``warned``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    for folder in ("data/train", "data/test", "src"):
        Path(folder).mkdir(parents=True)
        Path(folder, "part.csv" if folder != "src" else "train.py").write_text(textwrap.dedent(SCRIPT))

    def run(cell):
        text = textwrap.dedent(cell)
        for old, new in IMPORTS.items():
            text = re.sub(old, new, text, flags=re.MULTILINE)
        variables = {"train_instance_type": "local_process"}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            exec(compile(text, "cell", "exec"), variables)
        return {**variables, "warned": [str(each.message) for each in warned]}

    return run


def log(estimator):
    return [event.message for event in estimator.latest_training_job.logs()]


def test_the_cells_of_a_session_of_a_region_train_and_fetch_by_uris_of_its_bucket(notebook):
    cell = """
        import boto3
        import sagemaker
        from sagemaker.inputs import TrainingInput
        from sagemaker.s3 import S3Downloader, S3Uploader
        from sagemaker.tensorflow import TensorFlow

        sess = sagemaker.Session(boto_session=boto3.Session(region_name='us-west-2'))
        role = sagemaker.get_execution_role(sagemaker_session=sess)
        bucket, region, account = sess.default_bucket(), sess.boto_region_name, sess.account_id()
        s3_prefix = f's3://{bucket}/tf-boston'
        train = S3Uploader.upload('data/train/part.csv', f'{s3_prefix}/train')
        S3Uploader.upload_string_as_file_body('3,4', desired_s3_uri=f'{s3_prefix}/test/x_test.csv',
                                              sagemaker_session=sess)
        uploaded = S3Downloader.list(s3_prefix)
        estimator = TensorFlow(entry_point='src/train.py', model_dir=f'{s3_prefix}/models/1', role=role,
                               instance_count=1, instance_type=train_instance_type, sagemaker_session=sess,
                               hyperparameters={'epochs': 3}, output_path=f'{s3_prefix}/output',
                               checkpoint_s3_uri=f'{s3_prefix}/checkpoints', base_job_name='tf-boston')
        estimator.fit({'train': TrainingInput(s3_data=train, content_type='text/csv'),
                       'test': TrainingInput(s3_data=f'{s3_prefix}/test', input_mode='FastFile')}, wait=False)
        job_name = estimator.latest_training_job.name
        attached = TensorFlow.attach(job_name, sagemaker_session=sess)
        attached.latest_training_job.wait()
        checkpoint = sess.read_s3_file(bucket, 'tf-boston/checkpoints/epoch-3')
        found = sess.download_data('model', bucket=bucket,
                                   key_prefix=f'tf-boston/output/{job_name}/output/model.tar.gz')
        listed = sess.list_s3_files(bucket, f'tf-boston/output/{job_name}')
    """
    variables = notebook(cell)
    assert any("no AWS credentials: this session's bucket is a directory" in text for text in variables["warned"])
    assert (variables["region"], variables["account"]) == ("us-west-2", LOCAL_ACCOUNT)
    prefix = variables["s3_prefix"]
    assert variables["uploaded"] == [f"{prefix}/test/x_test.csv", f"{prefix}/train/part.csv"]
    lines = log(variables["attached"])
    assert {"channel train ['part.csv']", "channel test ['x_test.csv']"} <= set(lines)
    assert [line for line in lines if line.startswith("restored [] model_dir file:/") and line.endswith("/models/1")]
    assert variables["attached"].model_data == variables["estimator"].model_data
    assert variables["checkpoint"] == ""
    assert variables["found"] == ["model/model.tar.gz"]
    assert variables["listed"][-1].endswith(f"{variables['job_name']}/output/model.tar.gz")


def test_the_cells_of_a_notebook_train_unchanged_after_load_ext(tmp_path, monkeypatch, no_credentials):
    cells = [
        "%load_ext scriptmode.v2",
        """
        import sagemaker
        from sagemaker import get_execution_role
        from sagemaker.tensorflow import TensorFlow

        sess = sagemaker.Session()
        role = get_execution_role()
        train_instance_type = 'local_process'
        """,
        "inputs = {'train': sess.upload_data(path='data/train', key_prefix='mnist/train')}",
        """
        estimator = TensorFlow(entry_point='train.py', source_dir='src', role=role, train_instance_count=1,
                               train_instance_type=train_instance_type, framework_version='1.13', py_version='py3',
                               script_mode=True, hyperparameters={'epochs': 2})
        estimator.fit(inputs)
        """,
        "from sagemaker.tensorflow.serving import Model\nModel(role=role)",
    ]
    for folder in ("data/train", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data/train/part.csv").touch()
    (tmp_path / "src/train.py").write_text(textwrap.dedent(SCRIPT))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells])
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
        # Sockets in a short directory instead of ports, which another test may take meanwhile.
        config=Config(KernelManager={"transport": "ipc", "ip": f"{tmp_path}/kernel"}),
    )  # fmt: skip
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "jobs"))
    client.execute()
    printed = ["".join(json.dumps(output) for output in cell.outputs) for cell in notebook.cells]
    assert printed[0] == printed[2] == ""
    assert "channel train ['part.csv']" in printed[3]
    assert "Completed" in printed[3]
    # The error says what to do instead.
    (refused,) = notebook.cells[4].outputs
    assert refused.ename == "NotIncludedError"
    assert refused.evalue.startswith("scriptmode has no sagemaker.tensorflow.serving.Model; serve the model with")
