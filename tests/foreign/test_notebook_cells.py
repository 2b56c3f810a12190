"""Estimator cells as AWS's notebooks have them run on this machine, without an account, by the changed imports.

README.md names the notebooks whose cells have these shapes. Beside the imports the cells' variable for the instance
type is changed, as the notebooks change it for local mode.
"""

import re
import tarfile
import textwrap
import warnings
from pathlib import Path

import pytest

from scriptmode.spec.hosts import LOCAL_ACCOUNT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

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
        print("channel", name, sorted(os.listdir(path)) if os.path.isdir(path) else len(open(path + "_0").read()))
    print("on", host, "of", group or "one group", "epochs", args.epochs, "batch", args.batch_size, "rest", unknown)
    restored = sorted(os.listdir("/opt/ml/checkpoints")) if os.path.isdir("/opt/ml/checkpoints") else []
    print("restored", restored)
    if os.path.isdir("/opt/ml/checkpoints"):
        open(f"/opt/ml/checkpoints/epoch-{args.epochs}", "w").close()
    for epoch in range(args.epochs):
        print(f"epoch {epoch} - loss: {1 / (epoch + 1):.2f} - accuracy: 0.{epoch}")
    os.makedirs("/opt/ml/model/1", exist_ok=True)
    open("/opt/ml/model/1/saved_model.pb", "w").write("model")
"""


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A function that runs a cell and returns its variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for folder in ("data/train", "data/test", "src"):
        Path(folder).mkdir(parents=True)
        Path(folder, "part.csv" if folder != "src" else "train.py").write_text(textwrap.dedent(SCRIPT))

    def run(cell):
        text = textwrap.dedent(cell)
        for old, new in IMPORTS.items():
            text = re.sub(old, new, text, flags=re.MULTILINE)
        variables = {"train_instance_type": "local_process"}
        with warnings.catch_warnings():
            # Of names of version 1, and of a session without credentials; other tests have these warnings.
            warnings.simplefilter("ignore")
            exec(compile(text, "cell", "exec"), variables)
        return variables

    return run


def log(estimator):
    return [event.message for event in estimator.latest_training_job.logs()]


def test_the_cells_of_a_workflow_upload_train_and_download(notebook):
    cell = """
        import sagemaker
        from sagemaker import get_execution_role
        from sagemaker.tensorflow import TensorFlow
        from sagemaker.s3 import S3Downloader, S3Uploader

        sess = sagemaker.Session()
        bucket = sess.default_bucket()
        role = get_execution_role()
        s3_prefix = 'tf-2-workflow'
        train_s3 = sess.upload_data(path='./data/train/', key_prefix='{}/data/train'.format(s3_prefix))
        test_s3 = S3Uploader.upload('./data/test', 's3://{}/{}/data/test'.format(bucket, s3_prefix))
        inputs = {'train': train_s3, 'test': test_s3}

        hyperparameters = {'epochs': 3, 'batch_size': 128, 'learning_rate': 0.01}
        local_estimator = TensorFlow(source_dir='src', entry_point='train.py', model_dir='/opt/ml/model',
                                     instance_type=train_instance_type, instance_count=1,
                                     hyperparameters=hyperparameters, role=role, base_job_name='tf-2-workflow',
                                     script_mode=True)
        local_estimator.fit(inputs)
        S3Downloader.download(local_estimator.model_data, 'model')
        job_name = local_estimator.latest_training_job.name
        account = sess.account_id()
        region = sess.boto_region_name
    """
    variables = notebook(cell)
    lines = log(variables["local_estimator"])
    assert "channel train ['part.csv']" in lines
    assert "channel test ['part.csv']" in lines
    assert variables["job_name"].startswith("tf-2-workflow-")
    assert (variables["account"], variables["region"]) == (LOCAL_ACCOUNT, "us-east-1")
    with tarfile.open("model/model.tar.gz") as archive:
        assert "1/saved_model.pb" in archive.getnames()


def test_the_cells_of_parameter_servers_and_horovod_train_by_two_estimators(notebook):
    cell = """
        import os
        import sagemaker
        from sagemaker.tensorflow import TensorFlow

        sagemaker_session = sagemaker.Session()
        role = sagemaker.get_execution_role()
        training_data_uri = sagemaker_session.upload_data(path=os.path.join('data', 'train'), key_prefix='mnist')
        mnist_estimator = TensorFlow(entry_point='src/train.py', role=role, train_instance_count=2,
                                     train_instance_type=train_instance_type, script_mode=True,
                                     distributions={'parameter_server': {'enabled': False}})
        mnist_estimator.fit(training_data_uri)
        mnist_estimator2 = TensorFlow(entry_point='train.py', source_dir='src', role=role, instance_count=1,
                                      instance_type=train_instance_type, sagemaker_session=sagemaker_session,
                                      hyperparameters={'epochs': 2, 'batch-size': 32})
        mnist_estimator2.fit({'training': training_data_uri}, wait=False)
        mnist_estimator2.latest_training_job.wait(logs='All')
    """
    variables = notebook(cell)
    lines = log(variables["mnist_estimator"])
    assert [line for line in lines if line.startswith("on algo-1 of ")]
    assert [line for line in lines if line.startswith("on algo-2 of ")]
    assert "channel training ['part.csv']" in log(variables["mnist_estimator2"])
    assert [line for line in log(variables["mnist_estimator2"]) if " epochs 2 batch 32 " in line]


def test_the_cells_of_spot_training_go_on_from_the_checkpoints_of_the_job_before(notebook):
    cell = """
        import sagemaker
        import uuid
        from sagemaker.tensorflow import TensorFlow

        sess = sagemaker.Session()
        role = sagemaker.get_execution_role()
        checkpoint_suffix = str(uuid.uuid4())[:8]
        checkpoint_s3_path = 's3://{}/checkpoint-{}'.format(sess.default_bucket(), checkpoint_suffix)
        print('Checkpointing Path: {}'.format(checkpoint_s3_path))
        use_spot_instances = False
        max_run = 600
        max_wait = 1200 if use_spot_instances else None
        jobs = []
        for epochs in (1, 2):
            spot_estimator = TensorFlow(entry_point='train.py', source_dir='src', model_dir=False, role=role,
                                        hyperparameters={'epochs': epochs}, instance_count=1,
                                        instance_type=train_instance_type, base_job_name='cifar10-tf-spot',
                                        checkpoint_s3_uri=checkpoint_s3_path, max_run=max_run, max_wait=max_wait,
                                        checkpoint_local_path='/opt/ml/checkpoints',
                                        use_spot_instances=use_spot_instances)
            spot_estimator.fit()
            jobs.append(spot_estimator)
    """
    first, second = notebook(cell)["jobs"]
    assert "restored []" in log(first)
    assert "restored ['epoch-1']" in log(second)
    assert second.checkpoint_s3_uri.startswith("s3://")


def test_the_cells_of_pipe_mode_read_what_they_uploaded(notebook):
    cell = """
        import sagemaker
        from sagemaker.inputs import TrainingInput
        from sagemaker.tensorflow import TensorFlow

        sess = sagemaker.Session()
        dataset_location = sess.upload_data(path='data', key_prefix='data/DEMO-cifar10-tf')
        remote_inputs = {
            'train': TrainingInput(dataset_location + '/train', input_mode='Pipe', content_type='csv'),
            'validation': TrainingInput(s3_data=dataset_location + '/test', distribution='FullyReplicated',
                                        s3_data_type='S3Prefix'),
        }
        estimator = TensorFlow(base_job_name='cifar10-tf', entry_point='train.py', source_dir='src/',
                               role=sagemaker.get_execution_role(), hyperparameters={'epochs': 1}, input_mode='File',
                               instance_count=1, instance_type=train_instance_type, tags=[{'Key': 'a', 'Value': 'b'}],
                               metric_definitions=[{'Name': 'train:accuracy', 'Regex': '.*accuracy: ([0-9\\\\.]+)'}])
        estimator.fit(remote_inputs, wait=True, logs=True)
    """
    estimator = notebook(cell)["estimator"]
    assert f"channel train {len(textwrap.dedent(SCRIPT))}" in log(estimator)
    assert "channel validation ['part.csv']" in log(estimator)
    assert [(row["metric_name"], row["value"]) for row in estimator.latest_training_job.metrics()] == [
        ("train:accuracy", 0.0)
    ]


def test_the_cells_of_a_heterogeneous_cluster_name_its_groups(notebook):
    cell = """
        import datetime
        import os
        from sagemaker.tensorflow import TensorFlow
        from sagemaker.instance_group import InstanceGroup
        from sagemaker.inputs import TrainingInput

        data_group = InstanceGroup('data_group', train_instance_type, 1)
        dnn_group = InstanceGroup('dnn_group', train_instance_type, 1)
        kwargs = dict()
        kwargs['hyperparameters'] = {'epochs': 1, 'batch_size': 64, 'num_of_data_workers': 1}
        kwargs['instance_groups'] = [data_group, dnn_group]
        estimator = TensorFlow(entry_point='train.py', source_dir='./src', role=os.environ.get('SAGEMAKER_ROLE'),
                               volume_size=30, max_run=1800, disable_profiler=True, **kwargs)
        estimator.fit(inputs=TrainingInput('file://' + os.path.abspath('data/train'), input_mode='FastFile'),
                      job_name='hetero-tf-data-{}'.format(datetime.datetime.now().strftime('%Y%m%dT%H%M%SZ')))
    """
    lines = log(notebook(cell)["estimator"])
    assert [line for line in lines if line.startswith("on algo-1 of data_group ")]
    assert [line for line in lines if line.startswith("on algo-2 of dnn_group ") and "--num_of_data_workers" in line]


def test_the_cells_that_attach_to_a_job_see_what_it_was_started_with(notebook):
    cell = """
        import sagemaker
        from sagemaker.estimator import Estimator
        from sagemaker.tensorflow import TensorFlow

        estimator = TensorFlow(role=sagemaker.get_execution_role(), instance_count=1,
                               instance_type=train_instance_type, entry_point='train.py', source_dir='src',
                               environment={'NAME': 'value'}, container_log_level=10, debugger_hook_config=False)
        estimator.set_hyperparameters(epochs=2)
        estimator.fit(logs=False)
        training_job_name = estimator.latest_training_job.name
        attached_estimator = TensorFlow.attach(training_job_name)
        same = attached_estimator.model_data == estimator.model_data
        epochs = attached_estimator.hyperparameters()['epochs']
        status = attached_estimator.latest_training_job.describe()['TrainingJobStatus']
    """
    variables = notebook(cell)
    assert (variables["same"], int(variables["epochs"]), variables["status"]) == (True, 2, "Completed")
    assert variables["attached_estimator"].environment == {"NAME": "value"}
