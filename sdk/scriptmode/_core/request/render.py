"""Render a training job as its CreateTrainingJob request. Pure; `fields` has the table of its fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import FIELDS, changed, render_fields, unchecked, without_empty
from scriptmode._core.spec import hyperparameters
from scriptmode._core.spec.inputs import MODEL_CONTENT_TYPE, Channel, TrainingInput
from scriptmode._core.spec.job_request import ABSENT, JobRequest
from scriptmode._core.spec.training_job import CODE_CHANNEL, Monitoring, TrainingJobSpec
from scriptmode.errors import SpecError
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.distribution import Distribution


def to_request(spec: TrainingJobSpec, job_name: str, *, region: str, source_uri: str | None = None) -> JobRequest:
    """Return what the request of a job states, but for its additional fields; ``source_uri`` has its source."""
    output_path = (spec.output.path or "").rstrip("/")
    resources = spec.resources
    return JobRequest(
        name=job_name,
        role=spec.role,
        algorithm=spec.algorithm,
        hyperparameters=_hyperparameters(spec, job_name, region=region, source=source_uri),
        environment=_environment(spec),
        channels=_channels(spec, source_uri),
        output=changed(spec.output, path=output_path),
        resources=resources if resources.instance_groups else changed(resources, instance_count=resources.count),
        limits=spec.limits,
        network=spec.network,
        plain_fields=spec.plain_fields,
        monitoring=_monitoring(spec.monitoring, output_path, job_name),
        tags=spec.tags,
        experiment=spec.experiment,
    )


def render_request(request: JobRequest) -> dict[str, Any]:
    """Return the CreateTrainingJob request; a parsed one is as it was, but for attributes that were changed since."""
    fields = render_fields(FIELDS, request)
    for path, rendered, given in request.corrections:
        *parents, last = path
        target: Any = fields
        for key in parents:
            target = _member(target, key)
        if target is ABSENT or _member(target, last) != rendered:
            continue
        if given is ABSENT:
            del target[last]
        else:
            target[last] = copy.deepcopy(given)
    return fields


def as_fields(request: JobRequest | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request as the service's JSON, also one that is a value."""
    return render_request(request) if isinstance(request, JobRequest) else request


def _member(value: Any, key: str | int) -> Any:
    try:
        return value[key]
    except (LookupError, TypeError):
        return ABSENT


def _environment(spec: TrainingJobSpec) -> dict[str, str]:
    variables = dict(spec.environment or {})
    if variables:
        check_settings(variables, "environment")
    return variables


def check_settings(variables: Mapping[str, str], owner: str) -> None:
    """Raise `SpecError` for a setting of the launcher among ``variables`` that the hosts would refuse."""
    from scriptmode_runtime._values import settings

    try:
        settings.read(variables)
    except settings.SettingError as error:
        what = f"{owner}[{error.name!r}] is {error.value!r}"
        raise SpecError(what, f"give {error.allowed}", argument="environment") from error


def names_algorithm(spec: TrainingJobSpec) -> bool:
    """Return whether the additional fields name an algorithm resource, which has an image."""
    algorithm = spec.additional_fields.get("AlgorithmSpecification")
    return isinstance(algorithm, dict) and "AlgorithmName" in algorithm


def _monitoring(given: Monitoring, output_path: str, job_name: str) -> Monitoring:
    """Return debugger, profiler and TensorBoard with the service's fields where they were asked for, or refused."""
    if given == Monitoring():
        return given
    from scriptmode._core.spec.monitoring import rule_for_job

    place = {"S3OutputPath": output_path}
    profiler = given.profiler
    if profiler is None and (given.profiler_off is not None or given.profiler_rules):
        profiler = {"DisableProfiler": bool(given.profiler_off)}
    if profiler is not None:
        profiler = {**({} if profiler.get("DisableProfiler") else place), **without_empty(dict(profiler))}
    hook = given.debug_hook if isinstance(given.debug_hook, dict) else {}
    return unchecked(
        Monitoring,
        debug_hook=None if given.debug_hook in (None, False) else {**place, **without_empty(hook)},
        debug_rules=tuple(rule_for_job(rule, job_name) for rule in given.debug_rules),
        profiler=profiler,
        profiler_rules=given.profiler_rules,
        tensorboard=None if given.tensorboard is None else {**place, **without_empty(dict(given.tensorboard))},
    )


def _hyperparameters(spec: TrainingJobSpec, job_name: str, *, region: str, source: str | None) -> dict[str, str]:
    encoded = hyperparameters.encode_hyperparameters(spec.hyperparameters, script_mode=spec.script is not None)
    if spec.script is not None:
        if spec.network.isolation and source is not None:
            source = f"{contract.DEFAULT_BASE_DIR}/{contract.DATA_DIR}/{CODE_CHANNEL}/{source.rsplit('/', 1)[-1]}"
        own: dict[str, object] = {
            contract.PROGRAM: spec.script.entry_point,
            contract.SUBMIT_DIRECTORY: source,
            **({contract.ARGUMENTS: list(spec.script.arguments)} if spec.script.arguments else {}),
            contract.LOG_LEVEL: spec.script.log_level,
            contract.JOB_NAME: job_name,
            contract.REGION: region,
            **_distribution(spec.distribution),
        }
        model_dir = spec.model_dir
        if model_dir and not isinstance(model_dir, str):
            path = (spec.output.path or "").rstrip("/")
            model_dir = derived_model_dir(path, job_name, with_mpi=contract.MPI_ENABLED in own)
        if isinstance(model_dir, str) and contract.MODEL_DIR_PARAMETER not in encoded:
            own[contract.MODEL_DIR_PARAMETER] = model_dir
        encoded.update({key: contract.encode(value) for key, value in own.items()})
    return hyperparameters.check_texts(encoded)


def _channels(spec: TrainingJobSpec, source_uri: str | None) -> tuple[Channel, ...]:
    """Add the channel of a model to start from, and the one that carries the source to hosts that cannot fetch it."""
    channels = list(spec.channels)
    if spec.model is not None:
        given = TrainingInput(spec.model.uri, content_type=MODEL_CONTENT_TYPE, input_mode="File")
        channels.append(Channel(spec.model.channel_name, given))
    if spec.network.isolation and source_uri is not None:
        mode = None if spec.algorithm.input_mode == "File" else "File"
        channels.append(Channel(CODE_CHANNEL, TrainingInput(source_uri, input_mode=mode)))
    return tuple(channels)


def _distribution(distribution: Distribution | None) -> dict[str, object]:
    """Return the hyperparameters of a distribution; images without roles read the groups that train together."""
    if distribution is None:
        return {}
    from scriptmode._core.spec.distribution import KINDS

    _, switch, options = next(kind for kind in KINDS.values() if isinstance(distribution, kind.make))
    given = {key: getattr(distribution, option) for option, key in options.items()}
    fields = {switch: True, **{key: value for key, value in given.items() if value not in (None, False, {})}}
    roles = getattr(distribution, "roles", {})
    groups = [group for members in roles.values() for group in members] if roles else list(distribution.instance_groups)
    return {**fields, contract.DISTRIBUTION_INSTANCE_GROUPS: groups} if groups else fields


def derived_model_dir(output_path: str, job_name: str, *, with_mpi: bool) -> str:
    """Return ``--model_dir`` as the TensorFlow estimator gives it: on the host under MPI, else below the output."""
    return f"{contract.DEFAULT_BASE_DIR}/{contract.MODEL_DIR}" if with_mpi else f"{output_path}/{job_name}/model"
