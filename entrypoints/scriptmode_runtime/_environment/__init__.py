"""This host's input from the platform: files under ``/opt/ml/input/config`` and a few variables. Writes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._environment.roles import assign_roles
from scriptmode_runtime._host import machine, programs
from scriptmode_runtime._values import cluster as clusters, settings
from scriptmode_runtime._values.errors import ConfigurationError

if TYPE_CHECKING:
    from scriptmode_runtime._host.machine import Machine
    from scriptmode_runtime._host.programs import Mpirun
    from scriptmode_runtime._values.cluster import Cluster
    from scriptmode_runtime._values.settings import Settings

    #: The platform's files: JSON objects, keyed by `contract`'s names.
    Files = Mapping[str, Mapping[str, Any]]

#: Variables of an image for settings that a request may have too. In the toolkit the image's program takes precedence.
_PROGRAM_VARIABLE, _SUBMIT_DIRECTORY_VARIABLE = "SAGEMAKER_PROGRAM", "SAGEMAKER_SUBMIT_DIRECTORY"
#: The toolkit uses boto3's region, which comes from the first of them.
_REGION_VARIABLES = ("AWS_DEFAULT_REGION", contract.REGION_VARIABLE)
#: Variables of the host process that the runtime extends or passes on.
_INHERITED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "NCCL_SOCKET_IFNAME",
    "SAGEMAKER_TRAINING_MODULE",
    "CA_REPOSITORY_ARN",
    "TF_CONFIG",
    contract.LEGACY_KERAS_VARIABLE,
)
#: Parameters of the toolkit and the platform without the reserved prefix.
_NOT_THE_USERS = (contract.TUNING_METRIC, "default_user_module_name")


class TrainingEnvironment(NamedTuple):
    """One host's part of a training job, from the platform's files and variables."""

    base_dir: str
    cluster: Cluster
    strategy: str
    resource_config: Mapping[str, Any]
    input_data_config: Mapping[str, Any]
    hyperparameters: Mapping[str, object]
    #: The parameters with the reserved prefix, decoded like the user's.
    framework_parameters: Mapping[str, Any]
    machine: Machine
    #: Variables of the host process that are set: among them ``TF_CONFIG``, the task that the program which started the
    #: host has set already, and TensorFlow's own choice of Keras, whatever its value.
    inherited: Mapping[str, str]
    python: str
    job_name: str = ""
    region: str = ""
    settings: Settings = settings.Settings()
    #: None where it is missing, or the strategy is not MPI.
    mpirun: Mpirun | None = None
    #: This machine's own name; on SageMaker it can differ from the host's name in the job.
    node: str = ""
    #: Directories from which the interpreter imports; none for a plan of another machine, whose packages are unknown.
    import_path: tuple[str, ...] = ()
    #: A directory of this launcher alone, created when it runs.
    scratch: str = "/tmp/scriptmode"  # noqa: S108 - a name to show in plans
    #: Where the processes write their stacks; "" where they do not.
    stacks: str = ""
    #: For the preview of a host: the texts of its source's files. None: they are in the code directory.
    source: Mapping[str, str] | None = None

    @property
    def host(self) -> str:
        """The name of this host."""
        return self.cluster.this.name

    @property
    def has_daemons(self) -> bool:
        """Whether ``mpirun`` has to reach other machines."""
        return self.strategy == contract.MPI and len(self.cluster.hosts) > 1 and not self.cluster.single_machine

    @property
    def program(self) -> str:
        """The entry point, relative to the code directory; "" where the job has none."""
        return str(self.framework_parameters.get(contract.PROGRAM) or "")

    @property
    def group(self) -> str:
        """The instance group of this host."""
        return str(self.resource_config.get("current_group_name", contract.HOMOGENEOUS_GROUP))

    @property
    def groups(self) -> dict[str, Mapping[str, Any]]:
        """The job's instance groups by name."""
        return {group["instance_group_name"]: group for group in self.resource_config.get("instance_groups", [])}

    @property
    def distribution_groups(self) -> list[str]:
        """The instance groups that train together; none without a distribution."""
        return _distribution_groups(self.framework_parameters, self.group)

    @property
    def launcher_socket(self) -> str:
        """Where the launcher listens for ``mpirun``'s ranks and for requests to start its daemons."""
        return os.path.join(self.scratch, "daemons")

    def path(self, name: str) -> str:
        """Return the absolute path of one of `contract`'s names under the root directory."""
        return os.path.join(self.base_dir, *name.split("/"))


def read(base_dir: str, environ: Mapping[str, str]) -> TrainingEnvironment:
    """Read this host's files below ``base_dir``; raises `ConfigurationError` naming the file and what is wrong."""
    files = {contract.RESOURCE_CONFIG_FILE: _read_object(base_dir, contract.RESOURCE_CONFIG_FILE)}
    for name in (contract.HYPERPARAMETERS_FILE, contract.INPUT_DATA_CONFIG_FILE, contract.CLUSTER_FILE):
        files[name] = _read_object(base_dir, name, default={})
    return with_machine(from_files(base_dir, files, environ), environ)


def from_files(base_dir: str, files: Files, environ: Mapping[str, str]) -> TrainingEnvironment:
    """Return a host's environment from the platform's files, without its machine; raises `ConfigurationError`."""
    resource_config = files[contract.RESOURCE_CONFIG_FILE]
    texts = files[contract.HYPERPARAMETERS_FILE]
    parameters = {key: contract.decode(text) if isinstance(text, str) else text for key, text in texts.items()}
    framework = _framework(parameters, environ)
    cluster, strategy = _cluster_and_strategy(base_dir, resource_config, framework, files[contract.CLUSTER_FILE])
    # The platform's variable takes precedence: a tuner sends the same hyperparameter with all of its jobs.
    job_name = str(environ.get(contract.JOB_NAME_VARIABLE) or framework.get(contract.JOB_NAME) or "")
    regions = (framework.get(contract.REGION), *map(environ.get, _REGION_VARIABLES))
    return TrainingEnvironment(
        base_dir=base_dir,
        cluster=cluster,
        strategy=strategy,
        resource_config=resource_config,
        input_data_config=files[contract.INPUT_DATA_CONFIG_FILE],
        hyperparameters=_user_hyperparameters(parameters, job_name),
        framework_parameters=framework,
        machine=machine.Machine(cpus=1, gpus=0, neurons=0),
        inherited={name: environ[name] for name in _INHERITED if name in environ},
        python=sys.executable,
        job_name=job_name,
        region=next((str(region) for region in regions if region), ""),
        settings=settings.read(environ),
    )


def with_machine(here: TrainingEnvironment, environ: Mapping[str, str]) -> TrainingEnvironment:
    """Return the environment with this machine's name, devices and programs."""
    is_mpi, path = here.strategy == contract.MPI, environ.get("PATH", os.defpath)
    return here._replace(
        machine=machine.inspect(environ=environ, most_cpus=environ.get(contract.CPUS_VARIABLE, "")),
        mpirun=programs.find_mpirun(here.python, path) if is_mpi else None,
        node=os.uname().nodename,
        import_path=tuple(sys.path),
    )


def _cluster_and_strategy(
    base_dir: str, resource_config: Mapping[str, Any], framework: dict[str, object], document: Mapping[str, Any]
) -> tuple[Cluster, str]:
    """Return the hosts that this one trains with, and the strategy."""
    try:
        names = list(map(str, resource_config["hosts"]))
        current = str(resource_config["current_host"])
    except (KeyError, TypeError) as error:
        raise ConfigurationError(f"{contract.RESOURCE_CONFIG_FILE} has no proper {error}") from error
    strategy = _strategy(framework)
    roles: Mapping[str, tuple[str, ...]] = assign_roles(framework, strategy, resource_config)
    group = str(resource_config.get("current_group_name", contract.HOMOGENEOUS_GROUP))
    together = _distribution_groups(framework, group)
    if strategy == contract.SINGLE or group not in together:
        strategy, roles, names = contract.SINGLE, {}, [current] if current in names else names
    elif resource_config.get("instance_groups"):
        names = [
            str(name)
            for member in resource_config["instance_groups"]
            if member["instance_group_name"] in together
            for name in member["hosts"]
        ]
    return clusters.parse(document, names, current, base_dir, roles=roles), strategy


def _strategy(framework: Mapping[str, object]) -> str:
    switches = [
        key
        for key, value in framework.items()
        if key.startswith(contract.RESERVED_PREFIX) and key.endswith("_enabled") and contract.enabled(value)
    ]
    unknown = [key for key in switches if key not in contract.STRATEGIES]
    if unknown:
        known = ", ".join(contract.STRATEGIES)
        raise ConfigurationError(
            f"hyperparameter {unknown[0]} asks for a distribution that this runtime does not have; use one of {known}"
        )
    chosen = sorted(key for key in switches if key in contract.STRATEGIES)
    if len(chosen) > 1:
        raise ConfigurationError(f"two distributions at once: {' and '.join(chosen)}; enable one of them")
    return contract.STRATEGIES[chosen[0]] if chosen else contract.SINGLE


def _distribution_groups(framework: Mapping[str, object], group: str) -> list[str]:
    named = framework.get(contract.DISTRIBUTION_INSTANCE_GROUPS)
    if isinstance(named, list):
        return [str(name) for name in named]
    return [group] if any(contract.enabled(framework.get(switch)) for switch in contract.STRATEGIES) else []


def _framework(parameters: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, object]:
    """Return script mode's own hyperparameters, where the image's variables may replace them."""
    framework = {key: value for key, value in parameters.items() if key.startswith(contract.RESERVED_PREFIX)}
    if environ.get(_SUBMIT_DIRECTORY_VARIABLE):
        framework.setdefault(contract.SUBMIT_DIRECTORY, environ[_SUBMIT_DIRECTORY_VARIABLE])
    if environ.get(_PROGRAM_VARIABLE):
        framework[contract.PROGRAM] = environ[_PROGRAM_VARIABLE]
    return framework


def _user_hyperparameters(parameters: Mapping[str, object], job_name: str) -> dict[str, object]:
    """Return the user's hyperparameters; each job of a tuning job has its own ``model_dir``, as in AWS's images."""
    users = {
        key: value
        for key, value in parameters.items()
        if not key.startswith(contract.RESERVED_PREFIX) and key not in _NOT_THE_USERS
    }
    shared = users.get(contract.MODEL_DIR_PARAMETER) if contract.TUNING_METRIC in parameters else None
    if isinstance(shared, str) and not shared.startswith(contract.DEFAULT_BASE_DIR):
        users[contract.MODEL_DIR_PARAMETER] = f"{shared}/{job_name}/{contract.MODEL_DIR}"
    return users


def _read_object(base_dir: str, name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    path = os.path.join(base_dir, *name.split("/"))
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError as error:
        if default is not None:
            return default
        raise ConfigurationError(
            f"{path} does not exist: this is not a training host; {contract.BASE_DIR_VARIABLE} moves the root directory"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path} holds a {type(document).__name__}; a JSON object is expected")
    return document
