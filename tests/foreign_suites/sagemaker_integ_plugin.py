"""Run the SageMaker SDK's integration tests against the server of ``AWS_ENDPOINT_URL``, whose Region is us-east-1."""

import contextlib
import os
import sys
from types import ModuleType

import boto3
import pytest

#: Tests of what the server has: training and tuning jobs with TensorFlow.
CHOSEN = {
    "test_mnist_with_checkpoint_config",
    "test_mnist_distributed_cpu",
    "test_mwms_gpu",
    "test_hvd_cpu",
    "test_tuning_tf",
}


def pytest_configure(config):
    config.option.boto_config = '{"region_name": "us-east-1"}'
    for marker in ("release", "slow_test", "local_mode", "canary_quick", "image_uris_unit_test"):
        config.addinivalue_line("markers", marker)
    import sagemaker.session

    # The SDK asks STS for the account at an address of its own.
    sagemaker.session.sts_regional_endpoint = lambda _region: os.environ["AWS_ENDPOINT_URL"]
    # With a prefix of keys, which the tests' session has, the SDK expects that the default bucket exists.
    account = boto3.client("sts").get_caller_identity()["Account"]
    boto3.client("s3").create_bucket(Bucket=f"sagemaker-us-east-1-{account}")
    boto3.client("iam").create_role(RoleName="SageMakerRole", AssumeRolePolicyDocument="{}")
    _stand_in("stopit", ThreadingTimeout=lambda *_, **_named: contextlib.nullcontext())
    _stand_in("awslogs")
    _stand_in("awslogs.core", AWSLogs=None)


def _stand_in(name, **content):
    """Add a module that the tests import for limits of time and for endpoints."""
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(content)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.originalname not in CHOSEN:
            item.add_marker(
                pytest.mark.skip(reason="deploys a model, processes data, or trains with another framework")
            )
