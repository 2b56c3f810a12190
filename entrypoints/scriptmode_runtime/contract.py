"""Names that both halves agree on: files under ``/opt/ml``, variables, script-mode hyperparameters.

Pure: no I/O, no environment. The facts are those of Amazon SageMaker's training contract
("How Amazon SageMaker Provides Training Information", "SageMaker Training Toolkit").
"""

from __future__ import annotations

import json

# --- /opt/ml -----------------------------------------------------------------------------------
DEFAULT_BASE_DIR = "/opt/ml"
BASE_DIR_VARIABLE = "SAGEMAKER_BASE_DIR"

INPUT_DIR = "input"
CONFIG_DIR = "input/config"
DATA_DIR = "input/data"
CODE_DIR = "code"
MODEL_DIR = "model"
CHECKPOINTS_DIR = "checkpoints"
OUTPUT_DIR = "output"
OUTPUT_DATA_DIR = "output/data"
OUTPUT_INTERMEDIATE_DIR = "output/intermediate"
FAILURE_FILE = "output/failure"

HYPERPARAMETERS_FILE = "input/config/hyperparameters.json"
INPUT_DATA_CONFIG_FILE = "input/config/inputdataconfig.json"
RESOURCE_CONFIG_FILE = "input/config/resourceconfig.json"

#: Ours, absent on SageMaker: where the hosts are when host names do not resolve to one machine
#: each. An object with the keys
#: ``hosts`` {host: {``address``, ``base_dir``, ``ports`` {role: port}}}, ``single_machine`` (bool),
#: ``isolate_requirements`` (bool), ``secret`` (str).
CLUSTER_FILE = "input/config/scriptmode.json"

#: The name SageMaker gives the one group of a cluster without instance groups.
HOMOGENEOUS_GROUP = "homogeneousCluster"

#: The platform shows at most this many characters of the failure file as FailureReason.
FAILURE_LIMIT = 1024

# --- ports -------------------------------------------------------------------------------------
#: One per role and host, used where CLUSTER_FILE names none. ``worker`` and ``ps`` are the ports
#: of the SageMaker TensorFlow toolkit (2222, 2223), ``mirrored`` too (8890).
DEFAULT_PORTS = {
    "worker": 2222,
    "ps": 2223,
    "chief": 2221,
    "mirrored": 8890,
    "peers": 2220,
    "ssh": 2224,
    "evaluator": 2225,
}

# --- variables the platform sets ---------------------------------------------------------------
JOB_NAME_VARIABLE = "TRAINING_JOB_NAME"
JOB_ARN_VARIABLE = "TRAINING_JOB_ARN"
REGION_VARIABLE = "AWS_REGION"
#: Ours: seconds between SIGTERM and SIGKILL that the platform grants; SageMaker's are 120.
STOP_GRACE_VARIABLE = "SCRIPTMODE_STOP_GRACE_SECONDS"
DEFAULT_STOP_GRACE = 120.0
#: Ours, all of them for a job's ``environment``; `settings` says what they do.
HOST_TIMEOUT_VARIABLE = "SCRIPTMODE_HOST_TIMEOUT_SECONDS"
DEFAULT_HOST_TIMEOUT = 60.0
HANG_SECONDS_VARIABLE = "SCRIPTMODE_HANG_SECONDS"
HANG_ACTION_VARIABLE = "SCRIPTMODE_HANG_ACTION"
MPI_LAUNCHER_VARIABLE = "SCRIPTMODE_MPI_LAUNCHER"
PEERS_LAUNCHER, SSH_LAUNCHER = "peers", "ssh"
#: "1" puts ``[<host> <process>] `` before every line of every process; "0" leaves out mpirun's own tags of ranks.
LOG_PREFIX_VARIABLE = "SCRIPTMODE_LOG_PREFIX"
#: What a source archive may unpack to, in GB (10^9 bytes). The default is the size of a job's volume, if it names none.
SOURCE_LIMIT_VARIABLE = "SCRIPTMODE_SOURCE_LIMIT_GB"
DEFAULT_SOURCE_LIMIT_GB = 30.0
#: What the job's hosts prove themselves with; the launcher takes it out of the environment.
SECRET_VARIABLE = "SCRIPTMODE_JOB_SECRET"  # noqa: S105 - its name

# --- variables Open MPI 4 and 5 set for each rank ----------------------------------------------
RANK_VARIABLE = "OMPI_COMM_WORLD_RANK"
LOCAL_RANK_VARIABLE = "OMPI_COMM_WORLD_LOCAL_RANK"
#: Ours, for them: where this machine's launcher listens.
LAUNCHER_VARIABLE = "SCRIPTMODE_LAUNCHER"

# --- script mode's own hyperparameters ---------------------------------------------------------
RESERVED_PREFIX = "sagemaker_"
TUNING_METRIC = "_tuning_objective_metric"

PROGRAM = "sagemaker_program"
SUBMIT_DIRECTORY = "sagemaker_submit_directory"
LOG_LEVEL = "sagemaker_container_log_level"
JOB_NAME = "sagemaker_job_name"
REGION = "sagemaker_region"
MODEL_DIR_PARAMETER = "model_dir"

PARAMETER_SERVER_ENABLED = "sagemaker_parameter_server_enabled"
#: Ours: the TensorFlow 2 coordinator layout instead of the between-graph one.
PARAMETER_SERVER_COORDINATOR = "sagemaker_parameter_server_coordinator"
#: Ours: an evaluator beside the last host's own part.
PARAMETER_SERVER_EVALUATOR = "sagemaker_parameter_server_evaluator"
#: Ours: an object of `ROLES` and the instance groups whose hosts have that role and no other.
PARAMETER_SERVER_ROLES = "sagemaker_parameter_server_roles"
MULTI_WORKER_MIRRORED_ENABLED = "sagemaker_multi_worker_mirrored_strategy_enabled"
#: Ours, both of them, as the parameter servers'.
MULTI_WORKER_MIRRORED_EVALUATOR = "sagemaker_multi_worker_mirrored_strategy_evaluator"
MULTI_WORKER_MIRRORED_ROLES = "sagemaker_multi_worker_mirrored_strategy_roles"
MPI_ENABLED = "sagemaker_mpi_enabled"
#: Each of them lets hosts train together.
DISTRIBUTION_SWITCHES = (PARAMETER_SERVER_ENABLED, MULTI_WORKER_MIRRORED_ENABLED, MPI_ENABLED)
MPI_PROCESSES_PER_HOST = "sagemaker_mpi_num_of_processes_per_host"
#: All ranks together, where it is not hosts times ranks of a host.
MPI_PROCESSES = "sagemaker_mpi_num_processes"
MPI_CUSTOM_OPTIONS = "sagemaker_mpi_custom_mpi_options"
#: Ours: each rank sees the one GPU of its local rank.
MPI_BIND_GPUS = "sagemaker_mpi_bind_gpus"
DISTRIBUTION_INSTANCE_GROUPS = "sagemaker_distribution_instance_groups"

#: TensorFlow's types of tasks (tf.estimator.RunConfig), the one that leads first; ``master`` is the older chief.
ROLES = ("master", "chief", "worker", "ps", "evaluator")


def encode(value: object) -> str:
    """Spell one hyperparameter as script mode does: JSON, as ``json.dumps`` writes it.

    Raises ``TypeError`` or ``ValueError`` for what JSON cannot carry (NaN and infinities included).
    """
    return json.dumps(value, allow_nan=False)


def decode(text: str) -> object:
    """Give back the value that `encode` spelled; text that is not JSON stands for itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
