"""The constructor's arguments: names of older SageMaker SDKs, unknown names, conversion and validation."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError, invalid
from scriptmode.spec.inputs import absolute_file_uri
from scriptmode.spec.names import base_of_image
from scriptmode.spec.training_job import RESERVED_TAGS, InstanceGroup, PretrainedModel, Script
from scriptmode.spec.versions import version_numbers
from scriptmode.text.messages import Problem, did_you_mean, suggest_similar, validate_keys
from scriptmode_runtime import contract

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from scriptmode.spec.job_request import JobRequest

#: SageMaker SDK v1's name of an argument, and its name since v2.
RENAMED = {
    "train_instance_count": "instance_count",
    "train_instance_type": "instance_type",
    "train_volume_size": "volume_size",
    "train_volume_kms_key": "volume_kms_key",
    "train_max_run": "max_run",
    "train_max_wait": "max_wait",
    "train_use_spot_instances": "use_spot_instances",
    "image_name": "image_uri",
    "distributions": "distribution",
}
#: Attributes of SageMaker SDK v1's estimators, and their names since v2.
RENAMED_ATTRIBUTES = {**RENAMED, "train_image": "training_image_uri"}
#: Arguments of SageMaker SDK v1 that its v2 takes and ignores, and what to do instead.
IGNORED = {
    "script_mode": "script mode is the only mode",
    "requirements_file": "put a requirements.txt into source_dir",
    "training_steps": "give the script a hyperparameter",
    "evaluation_steps": "give the script a hyperparameter",
    "checkpoint_path": "give checkpoint_s3_uri, or the script a hyperparameter",
    "run_tensorboard_locally": "call latest_training_job.tensorboard()",
}
#: Arguments of SageMaker SDK v2 that cannot have an effect, and what to do instead.
GONE = {
    "compiler_config": "leave it out: AWS makes no images with the SageMaker Training Compiler any more",
}

#: The SageMaker SDK's words for ``logs``, and whether each shows the log.
LOGS = {"All": True, "Training": True, "Rules": True, "None": False}
#: Fields of the service's ExperimentConfig.
EXPERIMENT_KEYS = ("ExperimentName", "TrialName", "TrialComponentDisplayName", "RunName")
_MODEL = "sagemaker.tensorflow.TensorFlowModel(model_data=estimator.model_data, role=..., framework_version=...)"
#: Methods of the SageMaker SDK's estimators that are not here, and what to do instead; the guide lists the same.
MISSING_METHODS = {
    **dict.fromkeys(
        ("deploy", "create_model", "delete_endpoint", "transformer", "register"),
        f"serve the model with the SageMaker SDK: {_MODEL}",
    ),
    "compile_model": "give estimator.model_data to boto3's create_compilation_job",
    "prepare_workflow_for_training": "build pipelines with the SageMaker SDK's own estimators, or give "
    "estimator.request() to a step of your own",
    **dict.fromkeys(
        ("enable_default_profiling", "disable_profiling", "update_profiler"),
        "set profiler_config before fit; boto3's update_training_job changes a running job",
    ),
    "disable_remote_debug": "set enable_remote_debug=False before fit",
    "get_remote_debug_config": "read enable_remote_debug",
    "get_session_chaining_config": "read enable_session_tag_chaining",
    "get_vpc_config": "read subnets and security_group_ids",
    "get_app_url": "call latest_training_job.tensorboard()",
    "logs": "call latest_training_job.print_logs()",
    "jobs": "keep what fit returns, or call TrainingJob.list()",
}
#: How similar a name must be to be taken for a misspelled argument: users may set attributes of their own.
_SIMILAR = 0.85


class Arguments:
    """An object whose constructor's arguments can be read, and be set until the next ``fit``."""

    def _construct(self, arguments: dict[str, Any]) -> None:
        """Set this object to what the constructor makes of ``arguments``."""
        raise NotImplementedError

    def _shown(self, name: str, value: Any) -> Any:  # noqa: ARG002 - for those that show something else
        """Return what an argument reads as, given its value."""
        return value

    def __getattr__(self, name: str) -> Any:
        """Return an argument of the constructor; called for names that are not attributes otherwise."""
        given = self.__dict__.get("_arguments", {})
        if name in given:
            return self._shown(name, given[name])
        if given and name in RENAMED_ATTRIBUTES:
            return getattr(self, _take_old_name(name, RENAMED_ATTRIBUTES[name], stacklevel=3))
        hint = MISSING_METHODS.get(name) or suggest_similar(name, given, cutoff=_SIMILAR)
        raise AttributeError(str(Problem(f"{type(self).__name__} has no attribute {name!r}", hint)))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an argument, checked as by the constructor; refuse what is nearly the name of one."""
        given = self.__dict__.get("_arguments", {})
        if given and name in RENAMED and self._is_new(name):
            name = _take_old_name(name, RENAMED[name], stacklevel=3)
        if name in given:
            self._construct({**given, name: value})
        elif given and self._is_new(name) and (hint := suggest_similar(name, given, cutoff=_SIMILAR)):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; {hint}")
        else:
            object.__setattr__(self, name, value)

    def _is_new(self, name: str) -> bool:
        return not name.startswith("_") and name not in self.__dict__ and not hasattr(type(self), name)


def take_old_names(given: Mapping[str, Any], arguments: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return ``arguments`` with the values given under v1 names; warn for each, and for those that v2 ignores.

    Raises ``TypeError`` for a name that no version knows and for an argument given under both names.
    """
    merged = dict(arguments)
    for name, value in given.items():
        if name in IGNORED or (name in GONE and value is None):
            _warn_of_ignored(name, value)
            continue
        if name in GONE:
            raise TypeError(f"the estimator has no argument {name!r} any more; {GONE[name]}")
        if name not in RENAMED:
            raise TypeError(str(Problem(f"the estimator has no argument {name!r}", did_you_mean(name, known))))
        new = RENAMED[name]
        current = arguments.get(new)
        # By identity: 0 equals False, and a comparison of an array is an array.
        if current is not None and current is not False:
            raise TypeError(f"the estimator got both {name!r} and {new!r}, which are the same; keep {new!r}")
        merged[_take_old_name(name, new, stacklevel=6)] = value
    return merged


def _take_old_name(name: str, new: str, *, stacklevel: int) -> str:
    """Return the new name; warn of the old one."""
    warnings.warn(f"{name} is SageMaker SDK v1's name; use {new}", DeprecationWarning, stacklevel=stacklevel)
    return new


def _warn_of_ignored(name: str, value: object) -> None:
    """Warn of an argument without an effect, with the line of the constructor's caller; ignore ``None``."""
    if value is None:
        return
    asks_for_nothing = name == "script_mode" and value is True
    category = DeprecationWarning if asks_for_nothing else UserWarning
    text = f"{name}={value!r} is an argument of SageMaker SDK v1 and has no effect: {IGNORED[name]}; leave it out"
    warnings.warn(text, category, stacklevel=6)


def script(
    entry_point: str | os.PathLike[str] | None,
    source_dir: str | os.PathLike[str] | None,
    dependencies: Iterable[str] | None,
    *,
    git_config: object,
    log_level: int,
    program_arguments: Iterable[str] | None,
) -> Script | None:
    """Parse the arguments that name the script; without ``entry_point`` the image has its own program."""
    if entry_point is None:
        if source_dir is not None or dependencies or program_arguments or git_config is not None:
            raise SpecError(
                "source_dir, dependencies, arguments and git_config need entry_point",
                argument="source_dir",
                advice="give it: the file in source_dir that is run",
            )
        return None
    if re.match(r"[a-z][a-z0-9+.-]*://", str(entry_point)):
        what = f"is {str(entry_point)!r}, but a script is a file of this machine"
        raise invalid("entry_point", what, "download it, or give source_dir='s3://.../sourcedir.tar.gz' that has it")
    folder = None if source_dir is None else str(source_dir)
    git = None
    if git_config is not None:
        from scriptmode.spec.git_source import parse_git_config

        git = parse_git_config(git_config)
    return Script(
        str(entry_point),
        folder,
        texts("dependencies", dependencies),
        log_level,
        git,
        texts("arguments", program_arguments),
    )


def reports_metrics(framework_version: str | None) -> bool:
    """Return whether AWS's image of that TensorFlow reports metrics: 1.15 and later (SageMaker SDK)."""
    return version_numbers(framework_version or "0") >= (1, 15)


def additional_fields(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parse additional fields of the request; ``None`` as a field's value takes the field out of it."""
    return copied("additional_request_fields", value)


def model(uri: str | None, channel_name: str | None) -> PretrainedModel | None:
    """Parse the pretrained model."""
    if uri is None:
        return None
    return PretrainedModel(str(uri)) if channel_name is None else PretrainedModel(str(uri), channel_name)


def model_dir(value: str | bool) -> str | bool:  # noqa: FBT001 - the estimator's argument is either
    """Return ``model_dir``; raise `SpecError` for a misspelled ``s3://`` or ``file://``."""
    scheme = re.match(r"(?!s3://|file://)([A-Za-z0-9]+):/", value) if isinstance(value, str) else None
    if scheme and (advice := suggest_similar(scheme[1].lower(), ("s3", "file"))):
        raise invalid("model_dir", f"is {value!r}", advice.replace("'?", "://'?"))
    return absolute_file_uri(value) if isinstance(value, str) else value


def experiment(value: object) -> dict[str, str]:
    """Parse ``experiment_config`` of ``fit``: the service's ExperimentConfig."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid("experiment_config", f"is {value!r}", f"give a dict of {', '.join(EXPERIMENT_KEYS)}")
    validate_keys("experiment_config", value, EXPERIMENT_KEYS, argument="experiment_config")
    return dict(value)


def of_latest_job(job: JobRequest) -> dict[str, Any]:
    """Return what arguments that were left out are for a job, as the SageMaker SDK says.

    An output path that is a whole bucket ends with a slash there.
    """
    path = job.output.path or ""
    found: dict[str, object] = {"output_path": f"{path}/" if re.fullmatch("s3://[^/]+", path) else path}
    if contract.MODEL_DIR_PARAMETER in job.hyperparameters:
        found["model_dir"] = job.parameter(contract.MODEL_DIR_PARAMETER)
    return found


def shows_logs(value: object) -> bool:
    """Return whether ``logs`` asks for the log: a truth value, or one or a list of the SageMaker SDK's words.

    Its ``"All"``, ``"Training"`` and ``"Rules"`` all show the log; ``"None"`` does not.
    """
    if isinstance(value, bool):
        return value
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) and word in LOGS for word in words):
        raise invalid(
            "logs", f"is {value!r}", "give True or False, or 'All', 'Training', 'Rules' or 'None', or a list of them"
        )
    return any(LOGS[word] for word in words)


def copied(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a deep copy of a dict of the caller."""
    if value is not None and not isinstance(value, Mapping):
        raise invalid(name, f"is {value!r}", "give a dict")
    try:
        return copy.deepcopy(dict(value or {}))
    except TypeError as error:
        raise invalid(name, f"has a value that cannot be copied: {error}", "give plain values") from error


def kept(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with copies of dicts and lists; sessions, platforms and other objects are not copied."""
    return {name: copy.deepcopy(value) if isinstance(value, (dict, list)) else value for name, value in given.items()}


def base_name(given: object, image_uri: object) -> str | None:
    """Return the beginning of job names: the argument, else the image's name; raise `SpecError` for other types."""
    for name, value in (("base_job_name", given), ("image_uri", image_uri)):
        if value is not None and not isinstance(value, str):
            raise invalid(name, f"is {value!r}", "give a string")
    if given:
        return str(given)
    return base_of_image(str(image_uri)) if image_uri else None


def tags(value: object) -> tuple[tuple[str, str], ...]:
    """Parse tags: a list of ``{"Key": ..., "Value": ...}`` or of the SageMaker SDK v3's Tag, or a dict."""
    if value is None or value == {}:
        return ()
    if isinstance(value, Mapping) and not set(value) <= {"Key", "Value"}:
        return _checked_tags([(key, each) for key, each in value.items()])
    if isinstance(value, Mapping):
        value = [value]
    try:
        return _checked_tags([_pair(each, "Key", "Value") for each in value])  # type: ignore[attr-defined]
    except (TypeError, LookupError) as error:
        raise invalid("tags", f"is {value!r}", "give a dict or a list of {'Key': ..., 'Value': ...}") from error


def _pair(value: Any, first: str, second: str) -> tuple[Any, Any]:
    """Return two fields of a dict, or of an object of the SageMaker SDK v3, whose attributes have their names."""
    if isinstance(value, Mapping) or not hasattr(value, first.lower()):
        return value[first], value[second]
    return getattr(value, first.lower()), getattr(value, second.lower(), None)


def _checked_tags(pairs: list[tuple[Any, Any]]) -> tuple[tuple[str, str], ...]:
    keys = [key for key, _ in pairs]
    for key, value in pairs:
        if value is None:
            raise SpecError(
                f"tags[{key!r}] is None", argument="tags", advice="give a string, '' for a tag without a value"
            )
        if keys.count(key) > 1:
            raise invalid("tags", f"has the key {key!r} {keys.count(key)} times", "a job has each once")
        if str(key).lower().startswith(RESERVED_TAGS):
            raise invalid(
                "tags", f"has the key {key!r}", f"those that begin with {RESERVED_TAGS!r} are AWS's own, rename it"
            )
    return tuple((str(key), str(value)) for key, value in pairs)


def metric_definitions(value: object) -> tuple[tuple[str, str], ...]:
    """Parse metric definitions: a list, or one name of a preset.

    The list has ``{"Name": ..., "Regex": ...}``, names of presets, and the SageMaker SDK v3's MetricDefinition.
    """
    if value is None:
        return ()
    from scriptmode.spec.metric_definitions import PRESETS

    known = ", ".join(map(repr, PRESETS))
    similar = suggest_similar(value, PRESETS) if isinstance(value, str) else ""
    advice = similar or f"give a list of {{'Name': ..., 'Regex': ...}}, or {known}"
    problem = invalid("metric_definitions", f"is {value!r}", advice)
    given: Any = [value] if isinstance(value, str) else value
    try:
        pairs = (PRESETS[each] if isinstance(each, str) else [_pair(each, "Name", "Regex")] for each in given)
        found = tuple(pair for each in pairs for pair in each)
    except (TypeError, KeyError) as error:
        raise problem from error
    if not all(isinstance(text, str) for pair in found for text in pair):
        raise problem
    return found


def instance_groups(value: Iterable[Any] | None) -> tuple[InstanceGroup, ...]:
    """Parse instance groups: ours, or any object with the same three attributes."""
    if value is None:
        return ()
    if isinstance(value, InstanceGroup) or not isinstance(value, Iterable):
        raise invalid("instance_groups", f"is {value!r}", "give a list of InstanceGroup")
    found = []
    for group in value:
        if not isinstance(group, InstanceGroup):
            group = _instance_group(group)  # noqa: PLW2901 - the SageMaker SDK's class becomes ours
        found.append(group)
    if not found:
        raise invalid(
            "instance_groups", "is empty", "give at least one InstanceGroup, or instance_type and instance_count"
        )
    return tuple(found)


def _instance_group(group: Any) -> InstanceGroup:
    try:
        return InstanceGroup(group.instance_group_name, group.instance_type, group.instance_count)
    except AttributeError as error:
        raise invalid("instance_groups", f"has {group!r}", "give InstanceGroup(name, instance_type, count)") from error


def texts(name: str, value: Iterable[str] | None) -> tuple[str, ...]:
    """Parse a list of strings; a single string is refused, since it would become a list of its letters."""
    if isinstance(value, str):
        raise invalid(name, f"is one string, {value!r}", "give a list of strings")
    return tuple(str(each) for each in value or ())
