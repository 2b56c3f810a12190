"""Every hyperparameter and variable that AWS's SageMaker Training Toolkit names is one of ours, or has a reason not to be."""

import ast
import re

import pytest
from contract.toolkit.running import reference
from processes.launchers import ENTRYPOINTS

_NAME = re.compile(r"sagemaker_\w+|_tuning_\w+|default_user_\w+|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
#: What is not named in our runtime, by the reason.
NOT_NAMED = {
    "of AWS's and PyTorch's libraries, whose switches are refused": """
        sagemaker_distributed_dataparallel_custom_mpi_options sagemaker_distributed_dataparallel_enabled
        sagemaker_instance_type sagemaker_pytorch_ddp_enabled sagemaker_pytorch_xla_multi_worker_enabled
        sagemaker_torch_distributed_enabled RUN_NEURON_PARALLEL_COMPILE SM_DLC_TORCH_VERSION SM_HP_MP_PARAMETERS
        USE_SMDEBUG FI_EFA_USE_DEVICE_RDMA FI_PROVIDER GPU_NUM_DEVICES NCCL_DEBUG NCCL_PROTO OFI_NCCL_NIC_DUP_CONNS
        RDMAV_FORK_SAFE XRT_HOST_ORDINAL XRT_MESH_SERVICE_ADDRESS XRT_SHARD_WORLD_SIZE XRT_WORKERS""",
    "of endpoints": "SAGEMAKER_BIND_TO_PORT SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT SAGEMAKER_SAFE_PORT_RANGE",
    "ranks have all variables of their host": "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN",
    "no program reads them": "PYTHON_PACKAGE PYTHON_PROGRAM sagemaker_local sagemaker_network_interface_name",
    "leaves out a wait for the hosts' names, which we do not have": "SM_STUDIO_LOCAL_MODE",
    "made of training_env": "SM_TRAINING_ENV",
}


def names(folder):
    nodes = (node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return set(filter(_NAME.fullmatch, texts))


@pytest.mark.slow
def test_every_name_of_the_toolkit_is_ours_or_has_a_reason():
    (theirs,) = reference().parent.glob("lib/python*/site-packages/sagemaker_training")
    assert names(theirs) - names(ENTRYPOINTS / "scriptmode_runtime") == {*" ".join(NOT_NAMED.values()).split()}
