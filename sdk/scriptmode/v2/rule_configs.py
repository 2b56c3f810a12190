"""The debugger's built-in rules under the names of ``sagemaker.debugger.rule_configs``. Pure."""

from __future__ import annotations

from functools import partial
from typing import Any

from scriptmode.core.text.messages import Problem, did_you_mean

__all__ = ["SMS", "ActionList", "Email", "StopTraining"]

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
    "NlpSequenceRatio": {"input_sequence": {"include_regex": ".*embedding0_input_0", **_EVERY}},
    "PoorWeightInitialization": {"relu_input": {"include_regex": ".*relu_input", **_EVERY}},
    "VanishingGradient": {"gradients": _EVERY},
    "WeightUpdateRatio": {"weights": _EVERY},
}  # fmt: skip
_PROFILER_RULES = (
    "BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization",
    "MaxInitializationTime", "OverallSystemUsage", "ProfilerReport", "StepOutlier",
)  # fmt: skip


class Action:
    """One action; the rules' image reads its text, in which the backslashes are a part."""

    def __init__(self, **parameters: str | None) -> None:
        named = {**parameters, "name": type(self).__name__.lower()}
        self._parameters = {name: value for name, value in named.items() if value is not None}

    def serialize(self) -> str:
        """Return the action's text."""
        return "{" + ", ".join(f'\\"{name}\\": \\"{value}\\"' for name, value in self._parameters.items()) + "}"


class StopTraining(Action):
    """Stops the training job, or the one whose name begins with a prefix."""

    def __init__(self, training_job_prefix: str | None = None) -> None:
        super().__init__(training_job_prefix=training_job_prefix)

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job to stop, unless there is one."""
        self._parameters.setdefault("training_job_prefix", training_job_name)


class Email(Action):
    """Sends an email."""

    def __init__(self, email_address: str) -> None:
        super().__init__(endpoint=email_address)


class SMS(Action):
    """Sends a text message."""

    def __init__(self, phone_number: str) -> None:
        super().__init__(endpoint=phone_number)


class ActionList:
    """Several actions."""

    def __init__(self, *actions: Action) -> None:
        self.actions = actions

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job that is stopped, where an action stops one and names none."""
        for action in self.actions:
            if isinstance(action, StopTraining):
                action.update_training_job_prefix_if_not_specified(training_job_name)

    def serialize(self) -> str:
        """Return the actions' text."""
        return "[" + ", ".join(action.serialize() for action in self.actions) + "]"


class ProfilerRuleConfig:
    """A profiling rule of AWS's image; parameters that are left out have the image's own defaults."""

    def __init__(self, rule_name: str, **rule_parameters: Any) -> None:
        self.rule_name = rule_name
        self.rule_parameters = {**rule_parameters, "rule_to_invoke": rule_name}


def _debug_rule(name: str, collections: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return a debugging rule as `scriptmode.v2.debugger.Rule.sagemaker` takes it."""
    return {
        "DebugRuleConfiguration": {"RuleConfigurationName": name, "RuleParameters": {"rule_to_invoke": name}},
        "CollectionConfigurations": [
            {"CollectionName": each, "CollectionParameters": dict(parameters)}
            for each, parameters in collections.items()
        ],
    }


def __getattr__(name: str) -> Any:
    if name in _PROFILER_RULES:
        return partial(ProfilerRuleConfig, name)
    rules = {rule: "".join(part.title() for part in rule.split("_")) for rule in __dir__() if rule.islower()}
    if name in rules:
        rule = rules[name]
        return partial(_debug_rule, rule.replace("Nlp", "NLP"), _DEBUG_RULES[rule])
    advice = did_you_mean(name, __dir__(), most=len(__dir__()))
    raise AttributeError(str(Problem(f"rule_configs of scriptmode.v2 has no rule {name!r}", advice)))


def __dir__() -> list[str]:
    spelled = (
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in each) for each in _DEBUG_RULES
    )
    return sorted([*_PROFILER_RULES, *(each[1:] for each in spelled)])
