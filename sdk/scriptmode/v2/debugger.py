"""The names of ``sagemaker.debugger``: functions that build the service's dicts, and rules. Pure.

Rules are objects, since their image depends on the Region and their actions on the job's name.
"""

from __future__ import annotations

import copy
import re
from functools import partial
from types import SimpleNamespace
from typing import Any

from scriptmode._core.spec.monitoring import DEFAULT_RULE_IMAGE

_EVERY = {"save_interval": "500"}
#: The debugging rules of AWS's image, and the collection of tensors that each reads, with its parameters.
_DEBUG_RULES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys((
        "AllZero", "ClassImbalance", "Confusion", "ExplodingTensor", "Overfit", "Overtraining", "SaturatedActivation",
        "SimilarAcrossRuns", "StalledTrainingRule", "TensorVariance", "TreeDepth", "UnchangedTensor",
    ), ()),
    "CheckInputImages": ("input_image", {"include_regex": ".*hybridsequential0_input_0", **_EVERY}),
    "DeadRelu": ("relu_output", {"include_regex": ".*relu_output", **_EVERY}),
    "FeatureImportanceOverweight": ("feature_importance", _EVERY), "LossNotDecreasing": ("losses", _EVERY),
    "NLPSequenceRatio": ("input_sequence", {"include_regex": ".*embedding0_input_0", **_EVERY}),
    "PoorWeightInitialization": ("relu_input", {"include_regex": ".*relu_input", **_EVERY}),
    "VanishingGradient": ("gradients", _EVERY), "WeightUpdateRatio": ("weights", _EVERY),
}  # fmt: skip
_PROFILER_RULES = (
    "BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization",
    "MaxInitializationTime", "OverallSystemUsage", "ProfilerReport", "StepOutlier",
)  # fmt: skip
PythonProfiler = SimpleNamespace(CPROFILE="cprofile", PYINSTRUMENT="pyinstrument")
cProfileTimer = SimpleNamespace(  # noqa: N816 - v2's name
    **{key.upper(): key for key in ("total_time", "cpu_time", "off_cpu_time", "default")}
)
#: What `FrameworkProfile` profiles: the first step and the number of steps where no range is given, and other fields.
_PROFILINGS: dict[str, tuple[int, int, dict[str, str]]] = {
    "DetailedProfilingConfig": (5, 1, {}), "DataloaderProfilingConfig": (7, 1, {"MetricsRegex": ".*"}),
    "PythonProfilingConfig": (9, 3, {"ProfilerName": "cprofile", "cProfileTimer": "total_time"}),
    "HorovodProfilingConfig": (13, 1, {}), "SMDataParallelProfilingConfig": (15, 1, {}),
}  # fmt: skip
_PREFIX = "training_job_prefix"
_PATHS = {"s3_output_path": "S3OutputPath", "container_local_output_path": "LocalPath"}
_STEPS = {"start_step": "StartStep", "num_steps": "NumSteps"}
_TIME = {"start_unix_time": "StartTimeInSecSinceEpoch", "duration": "Duration"}
#: The arguments of each class in the order of v2's constructor, and the fields of the service.
_FIELDS = {
    "CollectionConfig": {"name": "CollectionName", "parameters": "CollectionParameters"},
    "DebuggerHookConfig": {**_PATHS, "hook_parameters": "HookParameters",
        "collection_configs": "CollectionConfigurations"},
    "TensorBoardOutputConfig": _PATHS,
    "ProfilerConfig": {"s3_output_path": "S3OutputPath",
        "system_monitor_interval_millis": "ProfilingIntervalInMilliseconds",
        "framework_profile_params": "ProfilingParameters", "disable_profiler": "DisableProfiler"},
    "FrameworkProfile": {"local_path": "LocalPath", "file_max_size": "RotateMaxFileSizeInBytes",
        "file_close_interval": "RotateFileCloseIntervalInSeconds", "file_open_fail_threshold": "FileOpenFailThreshold"},
    **{kind: {**_STEPS, **_TIME} for kind in _PROFILINGS},
    "DataloaderProfilingConfig": {**_STEPS, **_TIME, "metrics_regex": "MetricsRegex"},
    "PythonProfilingConfig": {**_STEPS, **_TIME, "python_profiler": "ProfilerName", "cprofile_timer": "cProfileTimer"},
    "Rule": {"name": "RuleConfigurationName", "image_uri": "RuleEvaluatorImage", "instance_type": "InstanceType",
        "volume_size_in_gb": "VolumeSizeInGB", **_PATHS, "rule_parameters": "RuleParameters"},
}  # fmt: skip


def _build(kind: str, *values: Any, **given: Any) -> dict[str, Any]:
    """Return the fields of the arguments of a class of v2, without those that are ``None``."""
    table = _FIELDS[kind]
    given = {**dict(zip(table, values)), **given}
    if unknown := given.keys() - table.keys():
        raise TypeError(f"{kind} has no argument {min(unknown)!r}; it has {', '.join(table)}")
    return {table[name]: value for name, value in given.items() if value is not None}


def _profile(kind: str, *span: Any, profile_default_steps: bool = False, **given: Any) -> tuple[str, str]:
    """Return a kind of profiling, and its fields as AWS's images parse them: with a comma after the last one."""
    first, count, defaults = _PROFILINGS[kind]
    fields = _build(kind, *span, **given)
    steps, time = ({name: fields.pop(name) for name in names.values() if name in fields} for names in (_STEPS, _TIME))
    if time and steps:
        raise ValueError(f"{kind} has a range of steps and one of time; give one of them")
    if profile_default_steps or not steps:
        steps = {"StartStep": first, "NumSteps": count}
    fields = {**(time or {"StartStep": 0, "NumSteps": 1, **steps}), **defaults, **fields}
    if fields.get("ProfilerName") == PythonProfiler.PYINSTRUMENT:
        del fields["cProfileTimer"]
    elif "cProfileTimer" in fields and profile_default_steps:
        fields["cProfileTimer"] = cProfileTimer.DEFAULT
    texts = {name: f'"{value}"' if isinstance(value, str) else f"{value}" for name, value in fields.items()}
    return kind, "{" + "".join(f'"{name}": {text}, ' for name, text in texts.items()) + "}"


CollectionConfig = partial(_build, "CollectionConfig")
DebuggerHookConfig = partial(_build, "DebuggerHookConfig")
TensorBoardOutputConfig = partial(_build, "TensorBoardOutputConfig")
(DetailedProfilingConfig, DataloaderProfilingConfig, PythonProfilingConfig, HorovodProfilingConfig,
 SMDataParallelProfilingConfig) = _BUILDERS = [partial(_profile, kind) for kind in _PROFILINGS]  # fmt: skip


def ProfilerConfig(*values: Any, **given: Any) -> dict[str, object]:  # noqa: N802 - v2's name
    """Return how often the service stores the usage of resources and where, and what it profiles of the framework."""
    fields = {"DisableProfiler": False, **_build("ProfilerConfig", *values, **given)}
    return {name: value for name, value in fields.items() if name != "S3OutputPath" or not fields["DisableProfiler"]}


def FrameworkProfile(**given: Any) -> dict[str, str]:  # noqa: N802 - v2's name
    """Return ProfilingParameters; without any profiling, all of them over one range or their own steps."""
    own = filter(None, [given.pop(re.sub("(Prof|Con)", r"_\1", kind).lower(), None) for kind in _PROFILINGS])
    span = {name: value for name in (*_STEPS, *_TIME) if (value := given.pop(name, None)) is not None}
    profilings = dict(own) or dict(build(**span, profile_default_steps=not span) for build in _BUILDERS)
    files = _build("FrameworkProfile", "/opt/ml/output/profiler", 10485760, 60, 50)
    files = {**files, **_build("FrameworkProfile", **given)}
    return {**{name: str(value) for name, value in files.items()}, **profilings}


class _Actions:
    """Actions of a rule; the rules' image reads their text, in which the backslashes are a part."""

    def __init__(self, *actions: dict[str, str], form: str = "{}") -> None:
        self.actions = [{name: value for name, value in action.items() if value} for action in actions]
        self._form = form

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job that is stopped, where an action stops one and names none."""
        for action in self.actions:
            if action["name"] == "stoptraining":
                action.setdefault(_PREFIX, training_job_name)

    def serialize(self) -> str:
        """Return the text."""
        members = ([f'\\"{name}\\": \\"{value}\\"' for name, value in action.items()] for action in self.actions)
        return self._form.format(", ".join("{" + ", ".join(member) + "}" for member in members))


class Rule:
    """A debugging rule, which reads tensors that the job saves."""

    def __init__(self, name: str, image_uri: str = DEFAULT_RULE_IMAGE, **fields: Any) -> None:
        self.name, self.image_uri = name, image_uri
        self.actions = fields.pop("actions", None)
        self.collection_configs = list(fields.pop("collections_to_save", None) or ())
        fields["rule_parameters"] = fields.get("rule_parameters") or None
        self._fields = _build("Rule", name, image_uri, **fields)

    @classmethod
    def sagemaker(cls, base_config: dict[str, Any], name: str | None = None, **fields: Any) -> Rule:
        """Return one of the rules of AWS's image, such as ``rule_configs.overfit()``."""
        rule = base_config["DebugRuleConfiguration"]
        paths = fields.pop("other_trials_s3_input_paths", None) or ()
        other = {f"other_trial_{index}": path for index, path in enumerate(paths)}
        fields["rule_parameters"] = {**other, **rule.get("RuleParameters", {}), **(fields.get("rule_parameters") or {})}
        fields["collections_to_save"] = fields.get("collections_to_save") or base_config.get("CollectionConfigurations")
        return cls(name or rule["RuleConfigurationName"], **fields)

    @classmethod
    def custom(
        cls, name: str, image_uri: str, instance_type: str, volume_size_in_gb: int, *text: str, **fields: Any
    ) -> Rule:
        """Return a rule of a program of the caller's, or of an image."""
        given = {**dict(zip(("source", "rule_to_invoke"), text)), **fields}
        program = {"source_s3_uri": given.pop("source", None), "rule_to_invoke": given.pop("rule_to_invoke", None)}
        if len(program := dict(filter(all, program.items()))) == 1:
            raise ValueError("source and rule_to_invoke of a custom rule belong together; give both, or none")
        given["rule_parameters"] = {**program, **(given.get("rule_parameters") or {})}
        return cls(name, image_uri, instance_type=instance_type, volume_size_in_gb=volume_size_in_gb, **given)

    def to_debugger_rule_config_dict(self) -> dict[str, object]:
        """Return the service's DebugRuleConfiguration."""
        return dict(self._fields)


class ProfilerRule(Rule):
    """A profiling rule, which reads the usage of resources."""

    def to_profiler_rule_config_dict(self) -> dict[str, object]:
        """Return the service's ProfilerRuleConfiguration."""
        texts = {name: str(value) for name, value in self._fields.get("RuleParameters", {}).items()}
        return {**self._fields, "RuleParameters": texts} if texts else dict(self._fields)


def _rule(name: str, **parameters: Any) -> dict[str, object]:
    """Return a rule of AWS's image, as `Rule.sagemaker` takes it; a parameter left out has the image's default."""
    rule = {"RuleConfigurationName": name, "RuleParameters": {**parameters, "rule_to_invoke": name}}
    collections = [CollectionConfig(*copy.deepcopy(read))] if (read := _DEBUG_RULES.get(name)) else []
    return {"DebugRuleConfiguration": rule, "CollectionConfigurations": collections}


#: The debugging rules have names such as ``vanishing_gradient``, the profiling rules those of AWS's image.
rule_configs = SimpleNamespace(
    ActionList=lambda *several: _Actions(*(action for actions in several for action in actions.actions), form="[{}]"),
    StopTraining=lambda training_job_prefix="": _Actions({_PREFIX: training_job_prefix, "name": "stoptraining"}),
    Email=lambda email_address: _Actions({"endpoint": email_address, "name": "email"}),
    SMS=lambda phone_number: _Actions({"endpoint": phone_number, "name": "sms"}),
    **{re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=NLP)", "_", name).lower(): partial(_rule, name) for name in _DEBUG_RULES},
    **{name: partial(_rule, name) for name in _PROFILER_RULES},
)
