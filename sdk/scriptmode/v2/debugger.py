"""The classes of ``sagemaker.debugger``, which the estimators read by the names of the SageMaker SDK."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.monitoring import DEFAULT_RULE_IMAGE
from scriptmode.v2 import rule_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

    from scriptmode.v2.framework_profile import FrameworkProfile

__all__ = [
    "CollectionConfig", "DebuggerHookConfig", "ProfilerConfig", "ProfilerRule", "Rule", "TensorBoardOutputConfig",
    "rule_configs",
]  # fmt: skip


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class CollectionConfig:
    """A collection of tensors to save, with its parameters."""

    name: str
    parameters: Mapping[str, str] | None = None

    def _to_request_dict(self) -> dict[str, Any]:
        return _given(CollectionName=self.name, CollectionParameters=self.parameters)


@dataclass
class DebuggerHookConfig:
    """What the debugger saves, and where."""

    s3_output_path: str | None = None
    container_local_output_path: str | None = None
    hook_parameters: Mapping[str, str] | None = None
    collection_configs: list[CollectionConfig] | None = None

    def _to_request_dict(self) -> dict[str, Any]:
        saved = self.collection_configs
        return {
            "S3OutputPath": self.s3_output_path,
            **_given(
                LocalPath=self.container_local_output_path,
                HookParameters=self.hook_parameters,
                CollectionConfigurations=saved and [each._to_request_dict() for each in saved],  # noqa: SLF001 - of this module
            ),
        }


@dataclass
class TensorBoardOutputConfig:
    """Where the service stores event files."""

    s3_output_path: str
    container_local_output_path: str | None = None

    def _to_request_dict(self) -> dict[str, Any]:
        return _given(S3OutputPath=self.s3_output_path, LocalPath=self.container_local_output_path)


@dataclass
class ProfilerConfig:
    """How often the service stores the usage of resources and where, and what it profiles of the framework."""

    s3_output_path: str | None = None
    system_monitor_interval_millis: int | None = None
    framework_profile_params: FrameworkProfile | None = None
    disable_profiler: bool = False

    def _to_request_dict(self) -> dict[str, Any]:
        path = None if self.disable_profiler else self.s3_output_path
        profile = self.framework_profile_params
        return {
            "DisableProfiler": self.disable_profiler,
            **_given(
                S3OutputPath=path,
                ProfilingIntervalInMilliseconds=self.system_monitor_interval_millis,
                ProfilingParameters=profile and profile.profiling_parameters,
            ),
        }


@dataclass
class _Rule:
    name: str
    image_uri: str = DEFAULT_RULE_IMAGE
    instance_type: str | None = None
    container_local_output_path: str | None = None
    s3_output_path: str | None = None
    volume_size_in_gb: int | None = None
    rule_parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def custom(  # noqa: PLR0913 - the arguments of the SageMaker SDK
        cls,
        name: str,
        image_uri: str,
        instance_type: str,
        volume_size_in_gb: int,
        source: str | None = None,
        rule_to_invoke: str | None = None,
        *,
        rule_parameters: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Return a rule of a program of the caller's, or of an image."""
        if bool(source) != bool(rule_to_invoke):
            raise ValueError("source and rule_to_invoke of a custom rule belong together; give both, or none")
        own = {**_given(source_s3_uri=source, rule_to_invoke=rule_to_invoke), **(rule_parameters or {})}
        fields.update(instance_type=instance_type, volume_size_in_gb=volume_size_in_gb)
        return cls(name, image_uri, rule_parameters=own, **fields)

    def _to_request_dict(self) -> dict[str, Any]:
        return _given(
            RuleConfigurationName=self.name,
            RuleEvaluatorImage=self.image_uri,
            InstanceType=self.instance_type,
            VolumeSizeInGB=self.volume_size_in_gb,
            LocalPath=self.container_local_output_path,
            S3OutputPath=self.s3_output_path,
            RuleParameters=self.rule_parameters or None,
        )


@dataclass
class Rule(_Rule):
    """A debugging rule, which reads tensors that the job saves."""

    collection_configs: list[CollectionConfig] = field(default_factory=list)
    actions: Any = None

    @classmethod
    def sagemaker(
        cls,
        base_config: Mapping[str, Any],
        name: str | None = None,
        *,
        other_trials_s3_input_paths: Iterable[str] | None = None,
        rule_parameters: Mapping[str, Any] | None = None,
        collections_to_save: Iterable[CollectionConfig] | None = None,
        **fields: Any,
    ) -> Rule:
        """Return one of the rules of AWS's image, such as ``rule_configs.overfit()``."""
        rule, saved = base_config["DebugRuleConfiguration"], base_config.get("CollectionConfigurations", ())
        own = [CollectionConfig(each["CollectionName"], each.get("CollectionParameters")) for each in saved]
        others = {f"other_trial_{index}": path for index, path in enumerate(other_trials_s3_input_paths or ())}
        parameters = {**others, **rule["RuleParameters"], **(rule_parameters or {})}
        name = name or rule["RuleConfigurationName"]
        return cls(name, rule_parameters=parameters, collection_configs=list(collections_to_save or own), **fields)

    @classmethod
    def custom(
        cls, *arguments: Any, collections_to_save: Iterable[CollectionConfig] | None = None, **fields: Any
    ) -> Self:
        """Return a rule as `ProfilerRule.custom` does, and the collections that the job saves for it."""
        return super().custom(*arguments, collection_configs=list(collections_to_save or ()), **fields)

    def to_debugger_rule_config_dict(self) -> dict[str, Any]:
        """Return the service's DebugRuleConfiguration."""
        return self._to_request_dict()


@dataclass
class ProfilerRule(_Rule):
    """A profiling rule, which reads the usage of resources."""

    @classmethod
    def sagemaker(
        cls, base_config: rule_configs.ProfilerRuleConfig, name: str | None = None, **fields: Any
    ) -> ProfilerRule:
        """Return one of the rules of AWS's image, such as ``rule_configs.ProfilerReport()``."""
        return cls(name or base_config.rule_name, rule_parameters=base_config.rule_parameters, **fields)

    def to_profiler_rule_config_dict(self) -> dict[str, Any]:
        """Return the service's ProfilerRuleConfiguration."""
        parameters = {name: str(value) for name, value in self.rule_parameters.items()}
        return {**self._to_request_dict(), **_given(RuleParameters=parameters or None)}
