"""Names that the SDK and the runtime share: files below ``/opt/ml``, variables, hyperparameters.

Pure: no I/O, no environment. The source is Amazon SageMaker's training contract
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
#: Ours: where processes write their stacks, with the platform's request and the launcher's answer; absent elsewhere.
STACKS_DIR, STACKS_REQUEST, STACKS_ANSWER = "stacks", "stacks/request", "stacks/answer"
CODE_DIR = "code"
MODEL_DIR = "model"
CHECKPOINTS_DIR = "checkpoints"
OUTPUT_DIR = "output"
OUTPUT_DATA_DIR = "output/data"
OUTPUT_INTERMEDIATE_DIR = "output/intermediate"
FAILURE_FILE = "output/failure"
#: Ours: the same failure as an object: ``cause``, ``host``, ``process``, ``exit_code``, ``signal``, ``exception``,
#: ``hint``, ``traceback``.
FAILURE_RECORD_FILE = "output/failure.json"

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

#: The platform shows at most this many characters as FailureReason.
FAILURE_LIMIT = 1024
#: Of them the platform adds its own around the failure file: ``AlgorithmError: <failure file>, exit code: 255``.
FAILURE_FILE_LIMIT = FAILURE_LIMIT - len("AlgorithmError: , exit code: 255")
#: The largest record of a failure in bytes. Its longest text, the traceback, has at most this many characters: as JSON
#: in ASCII, in a message to another host, one character takes up to twelve bytes.
FAILURE_RECORD_LIMIT = 32 * 1024
TRACEBACK_LIMIT = 3000
_ELIDED = "[...]"

# --- ports -------------------------------------------------------------------------------------
#: One per role and host, used where CLUSTER_FILE names none. ``worker`` and ``ps`` are the ports
#: of the SageMaker TensorFlow toolkit (2222, 2223), ``mirrored`` too (8890); ``torch`` is that of ``torchrun``, and
#: ``jax`` that of JAX on Cloud TPU.
TORCH_PORT, JAX_PORT = "torch", "jax"
DEFAULT_PORTS = {
    "worker": 2222,
    "ps": 2223,
    "chief": 2221,
    "mirrored": 8890,
    "peers": 2220,
    "evaluator": 2225,
    TORCH_PORT: 29500,
    JAX_PORT: 8476,
}

# --- variables the platform sets ---------------------------------------------------------------
JOB_NAME_VARIABLE = "TRAINING_JOB_NAME"
JOB_ARN_VARIABLE = "TRAINING_JOB_ARN"
REGION_VARIABLE = "AWS_REGION"
#: Ours: seconds between SIGTERM and SIGKILL for the script.
STOP_GRACE_VARIABLE = "SCRIPTMODE_STOP_GRACE_SECONDS"
#: What SageMaker grants a host, and how much of that the launcher keeps to kill, reap and report.
DEFAULT_STOP_GRACE = 120.0
STOP_MARGIN = 2.0
#: Ours, all of them for a job's ``environment``; `settings` describes them.
HOST_TIMEOUT_VARIABLE = "SCRIPTMODE_HOST_TIMEOUT_SECONDS"
DEFAULT_HOST_TIMEOUT = 60.0
HANG_SECONDS_VARIABLE = "SCRIPTMODE_HANG_SECONDS"
HANG_ACTION_VARIABLE = "SCRIPTMODE_HANG_ACTION"
#: What a source archive may unpack to, in GB (10^9 bytes). The default is the size of a job's volume, if it names none.
SOURCE_LIMIT_VARIABLE = "SCRIPTMODE_SOURCE_LIMIT_GB"
DEFAULT_SOURCE_LIMIT_GB = 30.0
#: What the job's hosts prove themselves with to each other. The launcher takes it out of the environment, so that it is
#: not spread by accident; a script of the same user can read it all the same.
SECRET_VARIABLE = "SCRIPTMODE_JOB_SECRET"  # noqa: S105 - its name


# --- variables Open MPI 4 and 5 set for each rank ----------------------------------------------
RANK_VARIABLE = "OMPI_COMM_WORLD_RANK"
LOCAL_RANK_VARIABLE = "OMPI_COMM_WORLD_LOCAL_RANK"
#: The variables of ``torchrun`` for the same.
OPEN_MPI_VARIABLES = {
    "RANK": RANK_VARIABLE,
    "LOCAL_RANK": LOCAL_RANK_VARIABLE,
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}
#: What a rank's program gets in addition, unless the job sets it: ``torchrun``'s variables and JAX's coordinator.
WORLD_VARIABLES = (*OPEN_MPI_VARIABLES, "MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS")
#: The CPUs of a host that has a part of its machine, where nothing binds its processes to them.
CPUS_VARIABLE = "SCRIPTMODE_NUM_CPUS"
#: Ours, for the ranks: where this machine's launcher listens.
LAUNCHER_VARIABLE = "SCRIPTMODE_LAUNCHER"

# --- script mode's own hyperparameters ---------------------------------------------------------
RESERVED_PREFIX = "sagemaker_"
TUNING_METRIC = "_tuning_objective_metric"

PROGRAM = "sagemaker_program"
SUBMIT_DIRECTORY = "sagemaker_submit_directory"
#: Ours: a list of texts that follow the hyperparameters among the program's arguments, unchanged.
ARGUMENTS = "sagemaker_program_arguments"
LOG_LEVEL = "sagemaker_container_log_level"
JOB_NAME = "sagemaker_job_name"
REGION = "sagemaker_region"
#: Of AWS's ``train``: below which URI ``output/intermediate`` is uploaded while the script trains.
S3_OUTPUT = "sagemaker_s3_output"
#: Of AWS's older images: the name of the source's requirements.
REQUIREMENTS_FILE = "sagemaker_requirements"
MODEL_DIR_PARAMETER = "model_dir"

PARAMETER_SERVER_ENABLED = "sagemaker_parameter_server_enabled"
#: Ours: the TensorFlow 2 coordinator layout instead of the between-graph one.
PARAMETER_SERVER_COORDINATOR = "sagemaker_parameter_server_coordinator"
#: Ours: between-graph, the first trainer is ``chief``, and not AWS's ``master``.
PARAMETER_SERVER_CHIEF = "sagemaker_parameter_server_chief"
#: Ours: the number of hosts, the last ones, that are parameter servers alone, and the others none.
PARAMETER_SERVER_HOSTS = "sagemaker_parameter_server_hosts"
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

#: The runtime's strategies: without a distribution, and the one that each switch asks for.
SINGLE = "single"
PARAMETER_SERVER = "parameter_server"
MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
MPI = "mpi"
STRATEGIES = dict(zip(DISTRIBUTION_SWITCHES, (PARAMETER_SERVER, MULTI_WORKER_MIRRORED, MPI)))

MPI_PROCESSES_PER_HOST = "sagemaker_mpi_num_of_processes_per_host"
#: All ranks together, where it is not hosts times ranks of a host.
MPI_PROCESSES = "sagemaker_mpi_num_processes"
MPI_CUSTOM_OPTIONS = "sagemaker_mpi_custom_mpi_options"
#: Ours: each rank sees the one GPU of its local rank.
MPI_BIND_GPUS = "sagemaker_mpi_bind_gpus"
DISTRIBUTION_INSTANCE_GROUPS = "sagemaker_distribution_instance_groups"

#: TensorFlow's variable; with "1" ``tf.keras`` is Keras 2 of the package tf-keras.
LEGACY_KERAS_VARIABLE = "TF_USE_LEGACY_KERAS"
#: TensorFlow's types of tasks (tf.estimator.RunConfig), the one that leads first; ``master`` is the older chief.
ROLES = ("master", "chief", "worker", "ps", "evaluator")


def encode(value: object) -> str:
    """Serialize one hyperparameter as script mode does: as JSON, in the form of ``json.dumps``.

    Raises ``TypeError`` or ``ValueError`` for what JSON cannot carry (NaN and infinities included).
    """
    return json.dumps(value, allow_nan=False)


def decode(text: str) -> object:
    """Return the value that `encode` serialized; text that is not JSON is its own value."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def text_problem(text: str, *, encoding_errors: str = "strict") -> str:
    """Return why a text is not UTF-8 without NUL, "" if it is.

    With "surrogateescape" it may have bytes that are not UTF-8, as paths and arguments may (`os.fsdecode`).
    """
    try:
        text.encode(errors=encoding_errors)
    except UnicodeEncodeError as error:
        is_byte = "\udc80" <= text[error.start] <= "\udcff"
        kind = "a byte that is not UTF-8" if is_byte else "a surrogate character (half of a pair)"
        return f"has {kind} at position {error.start + 1}"
    return "has a NUL character" if "\0" in text else ""


def argument_text(value: object) -> str:
    """Return the argument of a script that stands for a hyperparameter's value."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ",".join(f"{key}={member}" for key, member in sorted(value.items()))
    return str(value)


def hyperparameter_problem(name: str, text: str) -> str:
    """Return why no process can be given a hyperparameter of the request, "" if one can."""
    value = decode(text)
    words = value if name == ARGUMENTS and isinstance(value, list) else [value]
    problems = (text_problem(argument_text(word), encoding_errors="surrogateescape") for word in words)
    problem = next(filter(None, problems), "")
    return problem and f"hyperparameter {name!r} {problem}, and no process can be given that"


def enabled(value: object) -> bool:
    """Return whether a switch is on, spelled as JSON or as Python does."""
    return value.lower() in ("true", "1") if isinstance(value, str) else bool(value)


def shorten(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` characters: its first and its last lines, with "[...]" in place of the rest.

    The first line of a failure names what failed, and the last lines have the reason. Whole lines are left out, because
    a part of a sentence can mean the opposite of the whole. The first and the last line are cut, in their middle, only
    where these two alone are too long.
    """
    if len(text) <= limit:
        return text
    first, *lines = text.split("\n")
    if not lines:
        return _cut(first, limit)
    first = _cut(first, max(limit // 2, limit - len(lines[-1]) - len(_ELIDED) - 2))
    remaining = limit - len(first) - len(_ELIDED) - 1
    kept: list[str] = []
    while lines and remaining > len(lines[-1]):
        kept.insert(0, lines.pop())
        remaining -= len(kept[0]) + 1
    return "\n".join([first, _ELIDED, *(kept or [_cut(lines[-1], remaining - 1)])])[:limit]


def _cut(line: str, limit: int) -> str:
    """Return a line in at most ``limit`` characters: a third of its beginning, and its end."""
    if len(line) <= limit:
        return line
    mark = f" {_ELIDED} "
    start = limit // 3
    end = limit - start - len(mark)
    return line[:start] + mark + line[-end:] if end > 0 else line[: max(limit, 0)]
