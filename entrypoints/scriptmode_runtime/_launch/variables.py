"""The script's ``SM_*`` variables and its arguments. Pure.

Names and encodings are those of the SageMaker Training Toolkit's ENVIRONMENT_VARIABLES.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment

_PREFIX = "SM_"
_LOG_LEVEL_INFO = 20
#: The longest string that Linux passes to a new process (MAX_ARG_STRLEN in linux/binfmts.h).
_LONGEST = 128 * 1024 - 1
#: Hyperparameters of the toolkit itself; the other reserved ones are framework parameters.
_TOOLKIT_PARAMETERS = frozenset(
    {
        contract.PROGRAM,
        contract.SUBMIT_DIRECTORY,
        contract.LOG_LEVEL,
        contract.JOB_NAME,
        contract.REGION,
        "sagemaker_enable_cloudwatch_metrics",
        contract.S3_OUTPUT,
    }
)


def script_arguments(hyperparameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Render hyperparameters as the script's arguments: sorted, with values as ``str()`` renders them."""
    words: list[str] = []
    for key in sorted(hyperparameters):
        dashes = "-" * min(len(key), 2)
        words += [dashes + key, contract.argument_text(hyperparameters[key])]
    return tuple(words)


def program_arguments(environment: TrainingEnvironment) -> tuple[str, ...]:
    """Return all arguments of the program: those of the hyperparameters, then those that the job gives unchanged."""
    given = environment.framework_parameters.get(contract.ARGUMENTS) or []
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise ConfigurationError(f"hyperparameter {contract.ARGUMENTS} is not a list of texts: {given!r}")
    return (*script_arguments(environment.hyperparameters), *given)


def script_variables(environment: TrainingEnvironment) -> dict[str, str]:
    """Return the script's variables on this host, without those that are too long for a process (over 128 KiB)."""
    values: dict[str, object] = {**_cluster_values(environment), **_program_values(environment)}
    values.update(_folder_values(environment))
    values["training_env"] = _training_env(environment, values)
    for key, value in environment.hyperparameters.items():
        values[f"hp_{key}"] = value
    spelled = {_PREFIX + key.upper(): _value(value) for key, value in values.items()}
    spelled["SAGEMAKER_JOB_NAME"] = environment.job_name
    spelled["SAGEMAKER_REGION"] = environment.region
    spelled["CURRENT_HOST"] = environment.host
    return {
        name: text
        for name, text in spelled.items()
        if "=" not in name and len(name) + 1 + len(text.encode("utf-8", "surrogatepass")) < _LONGEST
    }


def _cluster_values(environment: TrainingEnvironment) -> dict[str, object]:
    resources = environment.resource_config
    groups = environment.groups
    values: dict[str, object] = {
        "hosts": resources["hosts"],
        "current_host": environment.host,
        "network_interface_name": resources.get("network_interface_name", "eth0"),
        "current_instance_type": resources.get("current_instance_type", "local"),
        "current_instance_group": environment.group,
        "current_instance_group_hosts": groups.get(environment.group, {}).get("hosts", []),
        "instance_groups": list(groups),
        "instance_groups_dict": groups,
        "distribution_instance_groups": environment.distribution_groups,
        "is_hetero": len(groups) > 1,
        "resource_config": resources,
        "num_cpus": environment.machine.cpus,
        "num_gpus": environment.machine.gpus,
        "num_neurons": environment.machine.neurons,
    }
    if resources.get("topology"):
        values["topology"] = resources["topology"]
    return values


def _program_values(environment: TrainingEnvironment) -> dict[str, object]:
    framework = environment.framework_parameters
    return {
        "hps": environment.hyperparameters,
        "user_args": list(program_arguments(environment)),
        "user_entry_point": environment.program,
        "module_name": environment.program.removesuffix(".py"),
        "module_dir": str(framework.get(contract.SUBMIT_DIRECTORY) or environment.path(contract.CODE_DIR)),
        "log_level": framework.get(contract.LOG_LEVEL, _LOG_LEVEL_INFO),
        "framework_params": {k: v for k, v in framework.items() if k not in _TOOLKIT_PARAMETERS},
        "framework_module": environment.inherited.get("SAGEMAKER_TRAINING_MODULE", ""),
    }


def _folder_values(environment: TrainingEnvironment) -> dict[str, object]:
    values: dict[str, object] = {
        "input_data_config": environment.input_data_config,
        "channels": sorted(environment.input_data_config),
        "input_dir": environment.path(contract.INPUT_DIR),
        "input_config_dir": environment.path(contract.CONFIG_DIR),
        "output_dir": environment.path(contract.OUTPUT_DIR),
        "output_data_dir": environment.path(contract.OUTPUT_DATA_DIR),
        "output_intermediate_dir": environment.path(contract.OUTPUT_INTERMEDIATE_DIR),
        "model_dir": environment.path(contract.MODEL_DIR),
    }
    for channel in environment.input_data_config:
        values[f"channel_{channel}"] = environment.path(f"{contract.DATA_DIR}/{channel}")
    return values


def _training_env(environment: TrainingEnvironment, values: Mapping[str, object]) -> dict[str, object]:
    """Return the one object that holds the other values, with the toolkit's names for its members."""
    renamed = {"hps": "hyperparameters", "framework_params": "additional_framework_parameters"}
    left_out = {"user_args", "channels"}
    folders = {channel: values[f"channel_{channel}"] for channel in environment.input_data_config}
    training_env = {
        renamed.get(key, key): value
        for key, value in values.items()
        if key not in left_out and not key.startswith("channel_")
    }
    together = _distribution_hosts(environment)
    lead = (together or environment.resource_config["hosts"])[0]
    training_env.update(
        framework_module=values["framework_module"] or None,
        channel_input_dirs=folders,
        job_name=environment.job_name or None,
        topology=environment.resource_config.get("topology", []),
        distribution_hosts=together,
        master_hostname=lead,
        is_master=lead == environment.host,
        # AWS's own libraries, which this runtime does not start.
        is_modelparallel_enabled=None,
        is_smddprun_installed=False,
        is_smddpmprun_installed=False,
    )
    return training_env


def _distribution_hosts(environment: TrainingEnvironment) -> list[str]:
    """Return the hosts of the groups that train together; all hosts where the platform names no groups."""
    if not environment.groups:
        return list(environment.resource_config["hosts"])
    return [
        host
        for name, group in environment.groups.items()
        if name in environment.distribution_groups
        for host in group["hosts"]
    ]


def _value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
