"""Constructor calls as AWS's notebooks write them: each is a request that the service's model accepts, or is refused.

README.md names where calls of these shapes stand. A refusal is one that the guide "Coming from sagemaker v2" lists.
"""

import json
import logging
import sys
import warnings
from pathlib import Path

import botocore.loaders
import botocore.model
import botocore.validate
import pytest

import scriptmode
from scriptmode.testing import FakeSageMaker

ROLE = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20190430T195525"
BUCKET = "sagemaker-us-east-1-123456789012"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.3.1-gpu-py37-cu110-ubuntu18.04"
PYTHONS = {
    "1.12.0": "py3", "1.15.2": "py3", "2.1.0": "py3", "2.3.0": "py37", "2.3.1": "py37", "2.4.1": "py37",
    "2.9.1": "py39", "2.11": "py39", "2.15": "py310",
}  # fmt: skip
TABLE = {
    "training": {
        "processors": ["cpu", "gpu"],
        "version_aliases": {"2.11": "2.11.0", "2.15": "2.15.0", "2.3": "2.3.0"},
        "versions": {
            (f"{version}.0" if version.count(".") == 1 else version): {
                "py_versions": [python],
                "registries": {"us-east-1": "763104351884"},
                "repository": "tensorflow-training",
            }
            for version, python in PYTHONS.items()
        },
    }
}

#: The text of a call, and fields of its request by their path.
RENDERED = {
    "parameter servers by names of version 1": (
        """TensorFlow(entry_point='train.py', role=role, train_instance_count=2, train_instance_type='ml.c4.2xlarge',
                      framework_version='2.1.0', py_version='py3', script_mode=True,
                      distributions={'parameter_server': {'enabled': True}})""",
        {"ResourceConfig.InstanceCount": 2, "HyperParameters.sagemaker_parameter_server_enabled": "true"},
    ),
    "script mode of version 1 with its hyperparameters": (
        """TensorFlow(entry_point='train.py', role=role, train_instance_count=1, train_instance_type='ml.c5.xlarge',
                      framework_version='1.12.0', py_version='py3', script_mode=True,
                      hyperparameters={'epochs': 2, 'batch-size': 32, 'learning-rate': 0.001})""",
        {"HyperParameters.epochs": "2", "HyperParameters.learning-rate": "0.001"},
    ),
    "the quickest": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.p3.2xlarge',
                      framework_version='2.3')""",
        {"AlgorithmSpecification.TrainingImage": f"{IMAGE.partition(':')[0]}:2.3-gpu-py37"},
    ),
    "a source directory and a role by name": (
        """TensorFlow(entry_point='train.py', source_dir='code', role='SageMakerRole', instance_count=1,
                      instance_type='ml.p3.2xlarge', framework_version='2.3.1', py_version='py37')""",
        {"RoleArn": "arn:aws:iam::123456789012:role/SageMakerRole", "HyperParameters.sagemaker_program": '"train.py"'},
    ),
    "no model_dir": (
        """TensorFlow(entry_point='train.py', source_dir='code', model_dir=False, role=role, instance_count=1,
                      instance_type='ml.c5.xlarge', framework_version='2.4.1', py_version='py37',
                      debugger_hook_config=False, disable_profiler=True)""",
        {"HyperParameters.model_dir": None, "DebugHookConfig": None, "ProfilerConfig": {"DisableProfiler": True}},
    ),
    "model_dir in the container": (
        """TensorFlow(entry_point='train.py', source_dir='code', model_dir='/opt/ml/model', role=role,
                      instance_count=1, instance_type='ml.c5.xlarge', framework_version='2.3', py_version='py37')""",
        {"HyperParameters.model_dir": '"/opt/ml/model"'},
    ),
    "a kept instance": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.c5.xlarge',
                      framework_version='2.11', py_version='py39', keep_alive_period_in_seconds=1800,
                      container_log_level=logging.INFO, max_run=int(15 * 60))""",
        {
            "ResourceConfig.KeepAlivePeriodInSeconds": 1800,
            "HyperParameters.sagemaker_container_log_level": "20",
            "StoppingCondition.MaxRuntimeInSeconds": 900,
        },
    ),
    "an instance that is not kept": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.c5.xlarge',
                      framework_version='2.11', py_version='py39', keep_alive_period_in_seconds=0)""",
        {"ResourceConfig.KeepAlivePeriodInSeconds": 0},
    ),
    "Horovod with options of mpirun and metrics": (
        """TensorFlow(entry_point='train.py', source_dir='code', role=role, instance_count=2,
                      instance_type='ml.p3.8xlarge', framework_version='2.1.0', py_version='py3', script_mode=True,
                      hyperparameters={'epochs': 5, 'batch-size': 64}, model_dir=f's3://{bucket}/model',
                      metric_definitions=[{'Name': 'train:loss', 'Regex': '.*loss: ([0-9\\\\.]+) - acc.*'}],
                      distribution={'mpi': {'enabled': True, 'processes_per_host': 4, 'custom_mpi_options':
                      '-verbose --NCCL_DEBUG=INFO -x OMPI_MCA_btl_vader_single_copy_mechanism=none'}})""",
        {
            "HyperParameters.sagemaker_mpi_num_of_processes_per_host": "4",
            "AlgorithmSpecification.MetricDefinitions": [
                {"Name": "train:loss", "Regex": r".*loss: ([0-9\.]+) - acc.*"}
            ],
        },
    ),
    "a heterogeneous cluster": (
        """TensorFlow(entry_point='train.py', source_dir='./code', role=role, framework_version='2.9.1',
                      py_version='py39', volume_size=30, max_run=1800, disable_profiler=True,
                      instance_groups=[data_group, dnn_group], distribution={'mpi': {'enabled': True,
                      'processes_per_host': 8, 'custom_mpi_options': '--NCCL_DEBUG WARN'},
                      'instance_groups': [dnn_group]})""",
        {
            "HyperParameters.sagemaker_distribution_instance_groups": '["dnn_group"]',
            "HyperParameters.model_dir": '"/opt/ml/model"',
        },
    ),
    "spot instances by names of version 1": (
        """TensorFlow(entry_point='train.py', role=role, train_instance_count=1, train_instance_type='ml.c5.xlarge',
                      framework_version='1.15.2', py_version='py3', train_use_spot_instances=True, train_max_run=3600,
                      train_max_wait=7200, checkpoint_s3_uri=f's3://{bucket}/checkpoints')""",
        {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 7200},
    ),
    "spot instances by a switch that is off": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.c5.xlarge',
                      framework_version='2.3.0', py_version='py37', use_spot_instances=False, max_run=3600,
                      max_wait=None, checkpoint_s3_uri=None)""",
        {"EnableManagedSpotTraining": None, "CheckpointConfig": None},
    ),
    "a network of one's own and keys": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=2, instance_type='ml.p3.16xlarge',
                      image_uri=image, py_version='py37', subnets=['subnet-0425d46d'], security_group_ids=['sg-0edc3'],
                      encrypt_inter_container_traffic=True, enable_network_isolation=False, volume_kms_key='key-1',
                      output_kms_key='key-2', sagemaker_session=sagemaker_session)""",
        {
            "VpcConfig": {"Subnets": ["subnet-0425d46d"], "SecurityGroupIds": ["sg-0edc3"]},
            "ResourceConfig.VolumeKmsKeyId": "key-1",
            "OutputDataConfig.KmsKeyId": "key-2",
        },
    ),
    "an image by its name of version 1": (
        """TensorFlow(entry_point='train.py', image_name='072677473360.dkr.ecr.us-east-1.amazonaws.com/team:tag',
                      role=role, base_job_name='tornasole', train_instance_count=1, py_version='py3',
                      framework_version='1.13', train_instance_type='ml.m4.xlarge')""",
        {"AlgorithmSpecification.TrainingImage": "072677473360.dkr.ecr.us-east-1.amazonaws.com/team:tag"},
    ),
    "mirrored workers": (
        """TensorFlow(entry_point='train.py', role=role, py_version='py39', framework_version='2.9.1',
                      instance_count=2, instance_type='ml.c5.xlarge',
                      distribution={'multi_worker_mirrored_strategy': {'enabled': True}})""",
        {"HyperParameters.sagemaker_multi_worker_mirrored_strategy_enabled": "true"},
    ),
    "a data parallel library that is off": (
        """TensorFlow(entry_point='train.py', role=role, py_version='py37', framework_version='2.4.1',
                      instance_count=1, instance_type='ml.p3.16xlarge',
                      distribution={'smdistributed': {'dataparallel': {'enabled': False}}})""",
        {"ResourceConfig.InstanceType": "ml.p3.16xlarge"},
    ),
    "libraries, places in S3, variables and tags": (
        """TensorFlow(entry_point='train.py', source_dir='code', dependencies=['library'], role=role,
                      py_version='py310', framework_version='2.15', instance_count=1, instance_type='ml.m5.large',
                      environment={'MLFLOW_TRACKING_URI': 'http://mlflow'}, tags=[{'Key': 'project', 'Value': 'x'}],
                      output_path=f's3://{bucket}/models', code_location=f's3://{bucket}/code', input_mode='Pipe',
                      enable_sagemaker_metrics=True, max_retry_attempts=2)""",
        {
            "AlgorithmSpecification.TrainingInputMode": "Pipe",
            "Environment": {"MLFLOW_TRACKING_URI": "http://mlflow"},
            "OutputDataConfig.S3OutputPath": f"s3://{BUCKET}/models",
            "RetryStrategy": {"MaximumRetryAttempts": 2},
        },
    ),
    "hyperparameters of every JSON type": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.m5.large',
                      framework_version='2.3.0', py_version='py37', volume_size=1024, rules=[], profiler_config=None,
                      hyperparameters={'lr': 1e-3, 'layers': [1, 2], 'augment': True, 'opt': 'sgd', 'd': {'a': 1}})""",
        {
            "HyperParameters.layers": "[1, 2]",
            "HyperParameters.augment": "true",
            "HyperParameters.opt": '"sgd"',
            "HyperParameters.d": '{"a": 1}',
        },
    ),
    "a requirements file of version 1": (
        """TensorFlow(entry_point='train.py', source_dir='code', requirements_file='requirements.txt', role=role,
                      py_version='py3', framework_version='1.12.0', train_instance_count=1, training_steps=10,
                      evaluation_steps=None, train_instance_type='ml.m5.large')""",
        {"HyperParameters.sagemaker_requirements": None, "HyperParameters.training_steps": None},
    ),
}
#: The text of a call, and what its error says.
REFUSED = {
    "a data parallel library": (
        """TensorFlow(entry_point='train.py', role=role, py_version='py37', framework_version='2.4.1',
                      instance_count=2, instance_type='ml.p3.16xlarge', debugger_hook_config=False,
                      distribution={'smdistributed': {'dataparallel': {'enabled': True}}})""",
        "distribution['smdistributed'] needs AWS's own library",
    ),
    "a model parallel library": (
        """TensorFlow(entry_point='train.py', role=role, py_version='py37', framework_version='2.3.1',
                      instance_count=1, instance_type='ml.p3.16xlarge', distribution={'smdistributed': {'modelparallel':
                      {'enabled': True, 'parameters': {'partitions': 2}}}, 'mpi': {'enabled': True}})""",
        "use {'mpi': {'enabled': True}} with Horovod: AWS's newest image with this library has TensorFlow 2.11",
    ),
    "the training compiler": (
        """TensorFlow(entry_point='train.py', role=role, py_version='py39', framework_version='2.9.1',
                      instance_count=1, instance_type='ml.p3.2xlarge', compiler_config=object())""",
        "leave it out: AWS makes no images with the SageMaker Training Compiler any more",
    ),
    "a version that is a number": (
        """TensorFlow(entry_point='train.py', role=role, train_instance_count=1, train_instance_type='ml.p2.xlarge',
                      framework_version=1.12)""",
        "framework_version is 1.12; give a string: '1.12'",
    ),
    "spot instances without a time to wait": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.c5.xlarge',
                      framework_version='2.3.0', py_version='py37', use_spot_instances=True)""",
        "use_spot_instances needs max_wait; give at least max_run (86400 s)",
    ),
    "a time to wait without spot instances": (
        """TensorFlow(entry_point='train.py', role=role, instance_count=1, instance_type='ml.c5.xlarge',
                      framework_version='2.3.0', py_version='py37', use_spot_instances=False, max_wait=7200)""",
        "max_wait is for spot training and for retries",
    ),
    "no instances": (
        """TensorFlow(entry_point='train.py', role=role, framework_version='2.4.1', py_version='py37',
                      script_mode=True, hyperparameters={'epochs': 5})""",
        "instance_type is missing",
    ),
    "a script in S3": (
        """TensorFlow(entry_point=f's3://{bucket}/scripts/train.py', role=role, framework_version='2.11',
                      py_version='py39', instance_count=1, instance_type='ml.m5.large')""",
        f"entry_point is 's3://{BUCKET}/scripts/train.py', but a script is a file of this machine",
    ),
    "two distributions": (
        """TensorFlow(entry_point='train.py', role=role, framework_version='2.11', py_version='py39', instance_count=1,
                      instance_type='ml.m5.large', distribution={'parameter_server': {'enabled': True},
                      'mpi': {'enabled': True}})""",
        "a job has one, disable the others",
    ),
}  # fmt: skip


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the cells before the call defined, in a directory with the files that it names."""
    monkeypatch.chdir(tmp_path)
    for file in ("train.py", "code/train.py", "code/requirements.txt", "library/part.py"):
        path = Path(file)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    table = tmp_path / "installed" / "sagemaker" / "image_uri_config" / "tensorflow.json"
    table.parent.mkdir(parents=True)
    (table.parent.parent / "__init__.py").touch()
    table.write_text(json.dumps(TABLE))
    for name in [name for name in sys.modules if name.partition(".")[0] == "sagemaker"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(table.parents[2])
    session = FakeSageMaker("us-east-1")
    session.roles["SageMakerRole"] = "arn:aws:iam::123456789012:role/SageMakerRole"

    def create(**arguments):
        return scriptmode.TensorFlow(**{"sagemaker_session": session, **arguments})

    return {
        "TensorFlow": create, "role": ROLE, "bucket": BUCKET, "image": IMAGE, "sagemaker_session": session,
        "logging": logging, "data_group": scriptmode.InstanceGroup("data_group", "ml.c5.18xlarge", 1),
        "dnn_group": scriptmode.InstanceGroup("dnn_group", "ml.p4d.24xlarge", 1),
    }  # fmt: skip


@pytest.fixture(scope="session")
def shape():
    """The input of CreateTrainingJob in botocore's model of the service."""
    model = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("sagemaker", "service-2"))
    return model.operation_model("CreateTrainingJob").input_shape


def request_of(call, names):
    with warnings.catch_warnings():
        # Names of version 1 are warned of; tests/sdk/test_calls_of_sagemaker_v2.py has the warnings.
        warnings.simplefilter("ignore")
        estimator = eval(call, dict(names))
    return estimator.request({"train": f"s3://{BUCKET}/train", "test": f"s3://{BUCKET}/test"})


@pytest.mark.parametrize(("call", "fields"), RENDERED.values(), ids=RENDERED.keys())
def test_a_call_is_a_request_that_the_services_model_accepts(names, shape, call, fields):
    request = request_of(call, names)
    assert not botocore.validate.ParamValidator().validate(request, shape).has_errors()
    for path, expected in fields.items():
        value = request
        for key in path.split("."):
            value = (value or {}).get(key)
        assert value == expected, path


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_call_is_refused_with_what_to_change(names, call, message):
    with pytest.raises((scriptmode.ScriptmodeError, TypeError)) as raised:
        request_of(call, names)
    assert message in str(raised.value)
