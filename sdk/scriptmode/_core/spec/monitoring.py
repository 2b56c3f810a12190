"""The debugger's, profiler's and TensorBoard's arguments: dicts of the service, or the SageMaker SDK's own objects."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from scriptmode._core.spec.training_job import Monitoring
from scriptmode.errors import invalid

#: The image of the SageMaker SDK's rules until the Region's image is known.
DEFAULT_RULE_IMAGE = "DEFAULT_RULE_EVALUATOR_IMAGE"
#: The rule parameter in which the SageMaker SDK sends a debugger rule's actions.
ACTIONS = "action_json"
#: Stands for the job's name in a debugger rule's actions until it is known; a job's name has no such characters.
_JOB = "<job>"
#: How the SageMaker SDK writes which job an action stops; the backslashes are part of the text.
_STOPS = '\\"training_job_prefix\\": \\"{}\\"'


def rules_of_next_job(rules: Iterable[Mapping[str, Any]], job_name: str) -> list[dict[str, object]]:
    """Return the debugger rules of a described job with actions for a job that is not named yet."""
    return [rule_for_job(rule, _JOB, earlier=job_name) for rule in rules]


def rule_for_job(rule: Mapping[str, Any], job_name: str, *, earlier: str = _JOB) -> dict[str, object]:
    """Return a rule as the request of a job has it: its actions stop that job, and no ``earlier`` one."""
    parameters = rule.get("RuleParameters") or {}
    text = parameters.get(ACTIONS)
    if not isinstance(text, str):
        return dict(rule)
    text = text.replace(_STOPS.format(earlier), _STOPS.format(job_name))
    return {**rule, "RuleParameters": {**parameters, ACTIONS: text}}


def parse_monitoring(given: Mapping[str, Any]) -> Monitoring:
    """Parse five of an estimator's arguments, as of the SageMaker SDK v2; what was not requested stays off."""
    debug_rules, profiler_rules, collections = _rules(given["rules"])
    hook = given["debugger_hook_config"]
    if hook is None and debug_rules:
        hook = True
    hook = bool(hook) if isinstance(hook, int) else _given_fields("debugger_hook_config", given)
    if collections and hook:
        asked = dict(hook) if isinstance(hook, dict) else {}
        said = asked.get("CollectionConfigurations", [])
        hook = {**asked, "CollectionConfigurations": [*said, *(item for item in collections if item not in said)]}
    return Monitoring(
        debug_hook=hook,
        debug_rules=debug_rules,
        profiler=_given_fields("profiler_config", given),
        profiler_rules=profiler_rules,
        profiler_off=given["disable_profiler"],
        tensorboard=_given_fields("tensorboard_output_config", given),
    )


def _rules(
    rules: Iterable[object] | None,
) -> tuple[tuple[Mapping[str, Any], ...], tuple[Mapping[str, Any], ...], list[dict[str, object]]]:
    """Return debugger rules, profiler rules, and the collections that the debugger's rules read."""
    debug: list[Mapping[str, Any]] = []
    profile: list[Mapping[str, Any]] = []
    collections: list[dict[str, object]] = []
    for rule in rules or ():
        if isinstance(rule, Mapping):
            debug.append(copy.deepcopy(dict(rule)))
        elif hasattr(rule, "to_profiler_rule_config_dict"):
            profile.append(_with_image(rule, rule.to_profiler_rule_config_dict()))
        elif hasattr(rule, "to_debugger_rule_config_dict"):
            debug.append(_with_actions(rule, _with_image(rule, rule.to_debugger_rule_config_dict())))
            for collection in getattr(rule, "collection_configs", None) or ():
                fields = _fields("collection_configs", collection)
                if fields not in collections:
                    collections.append(fields)
        else:
            raise invalid(
                "rules", f"has {rule!r}", "give the SageMaker SDK's rules, or dicts of DebugRuleConfigurations"
            )
    return tuple(debug), tuple(profile), collections


def _with_image(rule: object, fields: Mapping[str, Any]) -> dict[str, object]:
    """Keep the rule with its fields where its image depends on the Region, which is not known yet."""
    if fields.get("RuleEvaluatorImage") == DEFAULT_RULE_IMAGE:
        return {**fields, "RuleEvaluatorImage": rule}
    return dict(fields)


def _with_actions(rule: object, fields: Mapping[str, Any]) -> dict[str, object]:
    """Add a debugger rule's actions to its parameters, where it alone says them, as in the SageMaker SDK."""
    parameters = {name: value for name, value in (fields.get("RuleParameters") or {}).items() if name != ACTIONS}
    actions = copy.deepcopy(getattr(rule, "actions", None))
    if actions is not None:
        # An action that does not stop a job has no such method.
        if hasattr(actions, "update_training_job_prefix_if_not_specified"):
            actions.update_training_job_prefix_if_not_specified(_JOB)
        parameters[ACTIONS] = actions.serialize()
    return {**fields, "RuleParameters": parameters}


def _given_fields(argument: str, given: Mapping[str, Any]) -> dict[str, object] | None:
    return None if given[argument] is None else _fields(argument, given[argument])


def _fields(argument: str, value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return copy.deepcopy(dict(value))
    if hasattr(value, "_to_request_dict"):
        said = value._to_request_dict()  # noqa: SLF001 - how the SageMaker SDK's classes say it
        return dict(copy.deepcopy(said))
    raise invalid(argument, f"is {value!r}", "give a dict of the service's fields, or the SageMaker SDK's object")


#: Where the service stores what the debugger, the profiler and TensorBoard write: the configuration with its
#: S3OutputPath, and the directory below the job's name.
_MONITORING_OUTPUTS = {
    "debugger": ("DebugHookConfig", "debug-output"),
    "profiler": ("ProfilerConfig", "profiler-output"),
    "tensorboard": ("TensorBoardOutputConfig", "tensorboard-output"),
}


def monitoring_output(description: Mapping[str, Any], which: str) -> str | None:
    """Return the URI below which a job's debugger, profiler or tensorboard stores; ``None`` where it is off."""
    key, directory = _MONITORING_OUTPUTS[which]
    config = description.get(key) or {}
    path = config.get("S3OutputPath")
    if not path or config.get("DisableProfiler"):
        return None
    return f"{path.rstrip('/')}/{description['TrainingJobName']}/{directory}"


def rule_statuses(description: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the evaluation statuses of a described job's rules, those of the debugger first."""
    names = ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
    return [dict(status) for name in names for status in description.get(name) or ()]
