"""The arguments of `scriptmode.Estimator`: their names, order, types and defaults, and the job that they make. Pure.

The constructor's signature, the estimator's attributes and the option ``--set`` of the command line come from the
fields of `EstimatorArguments`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from scriptmode._core.spec import arguments, training_job
from scriptmode._core.spec.inputs import absolute_file_uri
from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode._core.spec.versions import version_numbers
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from typing import Callable, Concatenate, ParamSpec

    from scriptmode._core.spec.distribution import Distribution

    P = ParamSpec("P")

#: Number of arguments that may be positional, as in the SageMaker SDK.
_POSITIONAL = 4


class EstimatorArguments(NamedTuple):
    """The arguments of an estimator, which documents them; ``None`` for those that were left out."""

    image_uri: Optional[str] = None
    role: Optional[str] = None
    instance_count: Optional[int] = None
    instance_type: Optional[str] = None
    entry_point: Optional[Union[str, os.PathLike[str]]] = None
    source_dir: Optional[Union[str, os.PathLike[str]]] = None
    dependencies: Optional[Iterable[str]] = None
    hyperparameters: Optional[Mapping[str, Any]] = None
    arguments: Optional[Iterable[str]] = None
    distribution: object = None
    instance_groups: Optional[Iterable[Any]] = None
    input_mode: Optional[str] = None
    output_path: Optional[str] = None
    output_kms_key: Optional[str] = None
    disable_output_compression: bool = False
    code_location: Optional[str] = None
    model_dir: Optional[Union[str, bool]] = None
    checkpoint_s3_uri: Optional[str] = None
    checkpoint_local_path: Optional[str] = None
    base_job_name: Optional[str] = None
    environment: Optional[Mapping[str, str]] = None
    tags: object = None
    metric_definitions: object = None
    container_entry_point: Optional[Iterable[str]] = None
    container_arguments: Optional[Iterable[str]] = None
    container_log_level: Union[int, str] = training_job.Script.log_level
    volume_size: Optional[int] = None
    volume_kms_key: Optional[str] = None
    max_run: Optional[int] = None
    max_wait: Optional[int] = None
    use_spot_instances: bool = False
    max_retry_attempts: Optional[int] = None
    keep_alive_period_in_seconds: Optional[int] = None
    training_plan: Optional[str] = None
    instance_placement_config: Optional[Mapping[str, Any]] = None
    subnets: Optional[Iterable[str]] = None
    security_group_ids: Optional[Iterable[str]] = None
    enable_network_isolation: Optional[bool] = None
    encrypt_inter_container_traffic: Optional[bool] = None
    enable_sagemaker_metrics: Optional[bool] = None
    enable_infra_check: Optional[bool] = None
    enable_remote_debug: Optional[bool] = None
    enable_session_tag_chaining: Optional[bool] = None
    training_repository_access_mode: Optional[str] = None
    training_repository_credentials_provider_arn: Optional[str] = None
    framework_version: Optional[str] = None
    py_version: Optional[str] = None
    platform: Any = None
    sagemaker_session: object = None
    model_uri: Optional[str] = None
    model_channel_name: Optional[str] = None
    git_config: Optional[Mapping[str, str]] = None
    rules: Optional[Iterable[Any]] = None
    debugger_hook_config: object = None
    tensorboard_output_config: object = None
    profiler_config: object = None
    disable_profiler: Optional[bool] = None
    additional_request_fields: Optional[Mapping[str, Any]] = None

    def to_spec(
        self,
        *,
        base_job_name: str,
        gives_model_dir: bool,
        stores_metrics: bool,
        ignore_config_defaults: bool,
        plain: Iterable[str],
    ) -> training_job.TrainingJobSpec:
        """Return the job, without its inputs; raise `SpecError` for arguments that cannot make one.

        The first three say what holds where an argument was left out: the beginning of job names, whether the script
        gets ``--model_dir``, and whether metrics are stored for a framework version that reports them. The fourth says
        whether the defaults of the SageMaker config file are ignored. ``plain`` names the arguments that are fields of
        the request as they are.
        """
        return training_job.TrainingJobSpec(
            base_job_name=arguments.base_name(self.base_job_name, self.image_uri) or base_job_name,
            role=self.role,
            # Before the hosts: a script in the image's place shifts what follows it.
            algorithm=self._algorithm(),
            resources=self._resources(),
            script=self._script(),
            model=self._model(),
            distribution=self._distribution(),
            hyperparameters=arguments.copied("hyperparameters", self.hyperparameters),
            environment=None if self.environment is None else arguments.copied("environment", self.environment),
            output=self._output(),
            limits=training_job.Limits(
                max_run=training_job.Limits.max_run if self.max_run is None else self.max_run,
                max_wait=self.max_wait,
                use_spot_instances=self.use_spot_instances,
                max_retry_attempts=self.max_retry_attempts,
            ),
            network=training_job.Network(
                subnets=arguments.texts("subnets", self.subnets),
                security_group_ids=arguments.texts("security_group_ids", self.security_group_ids),
                isolation=self.enable_network_isolation,
                encrypt_traffic=self.encrypt_inter_container_traffic,
            ),
            plain_fields=self._plain_fields(plain, stores_metrics=stores_metrics),
            monitoring=self._monitoring(),
            tags=arguments.tags(self.tags),
            additional_fields=arguments.copied("additional_request_fields", self.additional_request_fields),
            model_dir=gives_model_dir if self.model_dir is None else _absolute(self.model_dir),
            ignore_config_defaults=ignore_config_defaults,
        )

    def _resources(self) -> training_job.Resources:
        return training_job.Resources(
            instance_count=self.instance_count,
            instance_type=self.instance_type,
            instance_groups=arguments.instance_groups(self.instance_groups),
            volume_size=training_job.Resources.volume_size if self.volume_size is None else self.volume_size,
            volume_kms_key=self.volume_kms_key,
            keep_alive_period=self.keep_alive_period_in_seconds,
        )

    def _algorithm(self) -> training_job.Algorithm:
        return training_job.Algorithm(
            image_uri=self.image_uri,
            input_mode=training_job.Algorithm.input_mode if self.input_mode is None else self.input_mode,
            metric_definitions=arguments.metric_definitions(self.metric_definitions),
            container_entry_point=arguments.texts("container_entry_point", self.container_entry_point),
            container_arguments=arguments.texts("container_arguments", self.container_arguments),
            framework_version=self.framework_version,
            py_version=self.py_version,
        )

    def _script(self) -> Optional[training_job.Script]:
        given = (self.entry_point, self.source_dir)
        entry_point, source_dir = (os.fspath(path) if isinstance(path, os.PathLike) else path for path in given)
        if entry_point is None:
            if self.source_dir is not None or self.dependencies or self.arguments or self.git_config is not None:
                what = "source_dir, dependencies, arguments and git_config need entry_point"
                raise SpecError(what, "give it: the file in source_dir that is run", argument="source_dir")
            return None
        if re.match(r"[a-z][a-z0-9+.-]*://", str(entry_point)):
            what = f"is {entry_point!r}, but a script is a file of this machine"
            step = "download it, or give source_dir='s3://.../sourcedir.tar.gz' that has it"
            raise invalid("entry_point", what, step)
        git = None
        if self.git_config is not None:
            from scriptmode._core.spec.git_source import parse_git_config

            git = parse_git_config(self.git_config)
        return training_job.Script(
            entry_point,
            source_dir,
            arguments.texts("dependencies", self.dependencies),
            self.container_log_level,
            git,
            arguments.texts("arguments", self.arguments),
        )

    def _distribution(self) -> Optional["Distribution"]:
        if self.distribution is None:
            return None
        from scriptmode._core.spec.distribution import parse_distribution

        return parse_distribution(self.distribution)

    def _model(self) -> Optional[training_job.PretrainedModel]:
        pretrained, name = training_job.PretrainedModel, self.model_channel_name
        channel = pretrained.channel_name if name is None else name
        return None if self.model_uri is None else pretrained(str(self.model_uri), channel)

    def _output(self) -> training_job.Output:
        return training_job.Output(
            path=_absolute(self.output_path),
            kms_key=self.output_kms_key,
            compress=not truth_value("disable_output_compression", self.disable_output_compression),
            code_location=_absolute(self.code_location),
            checkpoint_uri=_absolute(self.checkpoint_s3_uri),
            checkpoint_local_path=self.checkpoint_local_path,
        )

    def _monitoring(self) -> training_job.Monitoring:
        tools = (self.debugger_hook_config, self.profiler_config, self.tensorboard_output_config)
        if all(value is None for value in (*tools, self.rules, self.disable_profiler)):
            return training_job.Monitoring()
        from scriptmode._core.spec.monitoring import parse_monitoring

        return parse_monitoring(self._asdict())

    def _plain_fields(self, names: Iterable[str], *, stores_metrics: bool) -> dict[str, object]:
        given = {name: arguments.of_type(name, getattr(self, name), self.__annotations__[name]) for name in names}
        if self.enable_sagemaker_metrics is None and stores_metrics:
            # AWS's images with TensorFlow 1.15 and later report metrics (SageMaker SDK).
            given["enable_sagemaker_metrics"] = version_numbers(self.framework_version or "0") >= (1, 15) or None
        return {name: value for name, value in given.items() if value is not None}


def _absolute(uri: Any) -> Any:
    return absolute_file_uri(uri) if isinstance(uri, str) else uri


def _signature() -> Signature:
    own = [
        parameter if index < _POSITIONAL else parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for index, parameter in enumerate(signature(EstimatorArguments).parameters.values())
    ]
    older = Parameter(_OLDER_NAMES, Parameter.VAR_KEYWORD, annotation=Any)
    return Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *own, older])


_OLDER_NAMES = "older_names"
_SIGNATURE = _signature()


def with_signature_of(
    _: "Callable[P, EstimatorArguments]",
) -> "Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]":
    """Return a decorator that gives a constructor the arguments' signature, for type checkers and for `inspect`."""

    def decorate(constructor: "Callable[..., None]") -> "Callable[Concatenate[Any, P], None]":
        vars(constructor)["__signature__"] = _SIGNATURE
        return constructor

    return decorate


def parse_call(positional: tuple[Any, ...], named: Mapping[str, Any]) -> EstimatorArguments:
    """Return the arguments of a call of the constructor; warn of those under names of older SageMaker SDKs.

    Raises ``TypeError`` as the call of a function with the signature does, and `SpecError` for pipeline variables.
    """
    if len(positional) > _POSITIONAL:
        first = ", ".join(EstimatorArguments._fields[:_POSITIONAL])
        raise TypeError(
            f"the estimator takes {_POSITIONAL} positional arguments ({first}), but {len(positional)} were given; "
            "name the others, such as entry_point='train.py'"
        )
    given = _SIGNATURE.bind(None, *positional, **named).arguments
    del given["self"]
    older = given.pop(_OLDER_NAMES, {})
    refuse_pipeline_variables({**given, **older})
    if older:
        from scriptmode._core.spec import older_names

        given = older_names.take_all(older, given, EstimatorArguments._fields)
    return EstimatorArguments(**given)
