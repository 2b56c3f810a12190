"""The names of ``sagemaker.debugger``: functions that build the service's dicts, and rules. Pure.

Rules are objects, since their image depends on the Region and their actions on the job's name.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.monitoring import DEFAULT_RULE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

_EVERY = {"save_interval": "500"}
#: The debugging rules of AWS's image, and the collections of tensors that each reads, with their parameters.
_DEBUG_RULES: dict[str, dict[str, dict[str, str]]] = {
    **{
        name: {}
        for name in (
            "AllZero", "ClassImbalance", "Confusion", "ExplodingTensor", "Overfit", "Overtraining",
            "SaturatedActivation", "SimilarAcrossRuns", "StalledTrainingRule", "TensorVariance", "TreeDepth",
            "UnchangedTensor",
        )
    },
    "CheckInputImages": {"input_image": {"include_regex": ".*hybridsequential0_input_0", **_EVERY}},
    "DeadRelu": {"relu_output": {"include_regex": ".*relu_output", **_EVERY}},
    "FeatureImportanceOverweight": {"feature_importance": _EVERY},
    "LossNotDecreasing": {"losses": _EVERY},
    "NLPSequenceRatio": {"input_sequence": {"include_regex": ".*embedding0_input_0", **_EVERY}},
    "PoorWeightInitialization": {"relu_input": {"include_regex": ".*relu_input", **_EVERY}},
    "VanishingGradient": {"gradients": _EVERY},
    "WeightUpdateRatio": {"weights": _EVERY},
}  # fmt: skip
_PROFILER_RULES = (
    "BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization",
    "MaxInitializationTime", "OverallSystemUsage", "ProfilerReport", "StepOutlier",
)  # fmt: skip
#: What `FrameworkProfile` profiles, and the first step and the number of steps where no range is given.
_PROFILINGS = {
    "DetailedProfilingConfig": (5, 1),
    "DataloaderProfilingConfig": (7, 1),
    "PythonProfilingConfig": (9, 3),
    "HorovodProfilingConfig": (13, 1),
    "SMDataParallelProfilingConfig": (15, 1),
}
#: The arguments of each builder in the order of v2's constructor, and the fields of the service.
_FIELDS = {
    "CollectionConfig": {"name": "CollectionName", "parameters": "CollectionParameters"},
    "DebuggerHookConfig": {
        "s3_output_path": "S3OutputPath", "container_local_output_path": "LocalPath",
        "hook_parameters": "HookParameters", "collection_configs": "CollectionConfigurations",
    },
    "TensorBoardOutputConfig": {"s3_output_path": "S3OutputPath", "container_local_output_path": "LocalPath"},
    "ProfilerConfig": {
        "s3_output_path": "S3OutputPath", "system_monitor_interval_millis": "ProfilingIntervalInMilliseconds",
        "framework_profile_params": "ProfilingParameters", "disable_profiler": "DisableProfiler",
    },
    "FrameworkProfile": {
        "local_path": "LocalPath", "file_max_size": "RotateMaxFileSizeInBytes",
        "file_close_interval": "RotateFileCloseIntervalInSeconds", "file_open_fail_threshold": "FileOpenFailThreshold",
    },
    "Rule": {
        "name": "RuleConfigurationName", "image_uri": "RuleEvaluatorImage", "instance_type": "InstanceType",
        "volume_size_in_gb": "VolumeSizeInGB", "container_local_output_path": "LocalPath",
        "s3_output_path": "S3OutputPath", "rule_parameters": "RuleParameters",
    },
}  # fmt: skip
PythonProfiler = Enum("PythonProfiler", {"CPROFILE": "cprofile", "PYINSTRUMENT": "pyinstrument"})
cProfileTimer = Enum(  # noqa: N816 - the SageMaker SDK's name
    "cProfileTimer",
    {"TOTAL_TIME": "total_time", "CPU_TIME": "cpu_time", "OFF_CPU_TIME": "off_cpu_time", "DEFAULT": "default"},
)


def _build(kind: str, *values: Any, **given: Any) -> dict[str, Any]:
    """Return the fields of the arguments of a class of v2, without those that are ``None``."""
    table = _FIELDS[kind]
    given = {**dict(zip(table, values)), **given}
    if unknown := given.keys() - table.keys():
        raise TypeError(f"{kind} has no argument {min(unknown)!r}; it has {', '.join(table)}")
    return {table[name]: value for name, value in given.items() if value is not None}


CollectionConfig, DebuggerHookConfig, TensorBoardOutputConfig = (
    partial(_build, kind) for kind in ("CollectionConfig", "DebuggerHookConfig", "TensorBoardOutputConfig")
)


def ProfilerConfig(*values: Any, **given: Any) -> dict[str, object]:  # noqa: N802 - v2's name
    """Return how often the service stores the usage of resources and where, and what it profiles of the framework."""
    fields = {"DisableProfiler": False, **_build("ProfilerConfig", *values, **given)}
    return {name: value for name, value in fields.items() if name != "S3OutputPath" or not fields["DisableProfiler"]}


def _profiling(  # noqa: PLR0913 - v2's arguments
    kind: str,
    start_step: int | None = None,
    num_steps: int | None = None,
    start_unix_time: int | None = None,
    duration: float | None = None,
    *,
    profile_default_steps: bool = False,
    more: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Return a kind of profiling, and its fields as AWS's images parse them: with a comma after the last one."""
    time = {"StartTimeInSecSinceEpoch": start_unix_time, "Duration": duration}
    time = {name: value for name, value in time.items() if value is not None}
    if time and (start_step, num_steps) != (None, None):
        raise ValueError(f"{kind} has a range of steps and one of time; give one of them")
    is_default = profile_default_steps or (start_step, num_steps) == (None, None)
    steps = _PROFILINGS[kind] if is_default else (start_step or 0, num_steps or 1)
    fields = {**(time or {"StartStep": steps[0], "NumSteps": steps[1]}), **(more or {})}
    texts = (f'"{name}": ' + (f'"{value}"' if isinstance(value, str) else f"{value}") for name, value in fields.items())
    return kind, "{" + "".join(f"{text}, " for text in texts) + "}"


DetailedProfilingConfig, HorovodProfilingConfig, SMDataParallelProfilingConfig = (
    partial(_profiling, f"{kind}ProfilingConfig") for kind in ("Detailed", "Horovod", "SMDataParallel")
)


def DataloaderProfilingConfig(*span: Any, metrics_regex: str = ".*", **ranges: Any) -> tuple[str, str]:  # noqa: N802
    """Return the profiling of the data loaders."""
    return _profiling("DataloaderProfilingConfig", *span, **ranges, more={"MetricsRegex": metrics_regex})


def PythonProfilingConfig(  # noqa: N802 - v2's name
    *span: Any,
    python_profiler: Enum = PythonProfiler.CPROFILE,
    cprofile_timer: Enum = cProfileTimer.TOTAL_TIME,
    **ranges: Any,
) -> tuple[str, str]:
    """Return the profiling of the Python code."""
    more = {"ProfilerName": python_profiler.value}
    if python_profiler is PythonProfiler.CPROFILE:
        more["cProfileTimer"] = "default" if ranges.get("profile_default_steps") else cprofile_timer.value
    return _profiling("PythonProfilingConfig", *span, **ranges, more=more)


def FrameworkProfile(**given: Any) -> dict[str, str]:  # noqa: N802 - v2's name
    """Return ProfilingParameters; without any profiling, all of them over one range or their own steps."""
    named = {
        kind: given.pop(kind.lower().replace("prof", "_prof").replace("config", "_config"), None)
        for kind in _PROFILINGS
    }
    names = ("start_step", "num_steps", "start_unix_time", "duration")
    span = {name: given.pop(name, None) for name in names}
    is_default = span == dict.fromkeys(names)
    every = (
        DetailedProfilingConfig, DataloaderProfilingConfig, PythonProfilingConfig, HorovodProfilingConfig,
        SMDataParallelProfilingConfig,
    )  # fmt: skip
    profilings = list(filter(None, named.values())) or [
        build(**span, profile_default_steps=is_default) for build in every
    ]
    files = _build("FrameworkProfile", "/opt/ml/output/profiler", 10485760, 60, 50)
    files = {**files, **_build("FrameworkProfile", **given)}
    return {**{name: str(value) for name, value in files.items()}, **dict(profilings)}


class _Actions:
    """Actions of a rule; the rules' image reads their text, in which the backslashes are a part."""

    def __init__(self, *actions: dict[str, str], is_list: bool = False) -> None:
        self.actions, self._is_list = actions, is_list

    @classmethod
    def of_all(cls, *several: Self) -> Self:
        """Return several actions as one text."""
        return cls(*(action for actions in several for action in actions.actions), is_list=True)

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job that is stopped, where an action stops one and names none."""
        for action in self.actions:
            if action["name"] == "stoptraining":
                action.setdefault("training_job_prefix", training_job_name)

    def serialize(self) -> str:
        """Return the text."""
        texts = (
            "{" + ", ".join(f'\\"{name}\\": \\"{value}\\"' for name, value in action.items()) + "}"
            for action in self.actions
        )
        return f"[{', '.join(texts)}]" if self._is_list else "".join(texts)


def _stop_training(training_job_prefix: str | None = None) -> _Actions:
    prefix = {"training_job_prefix": training_job_prefix} if training_job_prefix else {}
    return _Actions({**prefix, "name": "stoptraining"})


class Rule:
    """A debugging rule, which reads tensors that the job saves."""

    def __init__(self, name: str, image_uri: str = DEFAULT_RULE_IMAGE, **fields: Any) -> None:
        self.name, self.image_uri = name, image_uri
        self.actions = fields.pop("actions", None)
        self.collection_configs = list(fields.pop("collections_to_save", None) or ())
        fields["rule_parameters"] = fields.get("rule_parameters") or None
        self._fields = _build("Rule", name, image_uri, **fields)

    @classmethod
    def sagemaker(
        cls,
        base_config: Mapping[str, Any],
        name: str | None = None,
        *,
        other_trials_s3_input_paths: Iterable[str] | None = None,
        rule_parameters: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Return one of the rules of AWS's image, such as ``rule_configs.overfit()``."""
        rule = base_config["DebugRuleConfiguration"]
        others = {f"other_trial_{index}": path for index, path in enumerate(other_trials_s3_input_paths or ())}
        fields["rule_parameters"] = {**others, **rule["RuleParameters"], **(rule_parameters or {})}
        fields["collections_to_save"] = fields.get("collections_to_save") or base_config["CollectionConfigurations"]
        return cls(name or rule["RuleConfigurationName"], **fields)

    @classmethod
    def custom(
        cls,
        name: str,
        image_uri: str,
        instance_type: str,
        volume_size_in_gb: int,
        source: str | None = None,
        rule_to_invoke: str | None = None,
        **fields: Any,
    ) -> Self:
        """Return a rule of a program of the caller's, or of an image."""
        if bool(source) != bool(rule_to_invoke):
            raise ValueError("source and rule_to_invoke of a custom rule belong together; give both, or none")
        program = {"source_s3_uri": source, "rule_to_invoke": rule_to_invoke} if source else {}
        fields["rule_parameters"] = {**program, **(fields.get("rule_parameters") or {})}
        return cls(name, image_uri, instance_type=instance_type, volume_size_in_gb=volume_size_in_gb, **fields)

    def to_debugger_rule_config_dict(self) -> dict[str, object]:
        """Return the service's DebugRuleConfiguration."""
        return dict(self._fields)


class ProfilerRule(Rule):
    """A profiling rule, which reads the usage of resources."""

    def to_profiler_rule_config_dict(self) -> dict[str, object]:
        """Return the service's ProfilerRuleConfiguration."""
        parameters = self._fields.get("RuleParameters")
        texts = {"RuleParameters": {name: str(value) for name, value in parameters.items()}} if parameters else {}
        return {**self._fields, **texts}


def _rule_config(name: str, **parameters: Any) -> dict[str, object]:
    """Return a rule of AWS's image, as `Rule.sagemaker` takes it; a parameter left out has the image's default."""
    collections = [CollectionConfig(*saved) for saved in _DEBUG_RULES.get(name, {}).items()]
    rule = {"RuleConfigurationName": name, "RuleParameters": {**parameters, "rule_to_invoke": name}}
    return {"DebugRuleConfiguration": rule, "CollectionConfigurations": collections}


_SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=NLP)")
#: The debugging rules have names such as ``vanishing_gradient``, the profiling rules those of AWS's image.
rule_configs = SimpleNamespace(
    ActionList=_Actions.of_all,
    StopTraining=_stop_training,
    Email=lambda email_address: _Actions({"endpoint": email_address, "name": "email"}),
    SMS=lambda phone_number: _Actions({"endpoint": phone_number, "name": "sms"}),
    **{_SNAKE.sub("_", name).lower(): partial(_rule_config, name) for name in _DEBUG_RULES},
    **{name: partial(_rule_config, name) for name in _PROFILER_RULES},
)
