"""The debugger's, profiler's and TensorBoard's arguments: dicts of the service, or the SageMaker SDK's own objects."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from scriptmode.errors import SpecError
from scriptmode.spec import Monitoring

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What the SageMaker SDK's rules say until the Region's own image is known.
DEFAULT_RULE_IMAGE = "DEFAULT_RULE_EVALUATOR_IMAGE"


def parse(
    *,
    debugger_hook_config: object,
    rules: Iterable[object] | None,
    profiler_config: object,
    disable_profiler: bool | None,
    tensorboard_output_config: object,
) -> Monitoring:
    """Read the five arguments as the SageMaker SDK v2 has them; nothing is switched on that was not asked for."""
    hook = debugger_hook_config
    debug_rules, profiler_rules, collections = _rules(rules)
    if hook is None and debug_rules:
        hook = True
    if hook is not None and not isinstance(hook, bool):
        hook = _fields("debugger_hook_config", hook)
    if collections and hook:
        asked = dict(hook) if isinstance(hook, dict) else {}
        said = asked.get("CollectionConfigurations", [])
        hook = {**asked, "CollectionConfigurations": [*said, *(each for each in collections if each not in said)]}
    return Monitoring(
        debug_hook=hook,
        debug_rules=debug_rules,
        profiler=None if profiler_config is None else _fields("profiler_config", profiler_config),
        profiler_rules=profiler_rules,
        profiler_off=disable_profiler,
        tensorboard=None
        if tensorboard_output_config is None
        else _fields("tensorboard_output_config", tensorboard_output_config),
    )


def _rules(
    rules: Iterable[object] | None,
) -> tuple[tuple[Mapping[str, Any], ...], tuple[Mapping[str, Any], ...], list[dict[str, Any]]]:
    """Tell debugger rules, profiler rules, and the collections that the debugger's rules look at."""
    debug: list[Mapping[str, Any]] = []
    profile: list[Mapping[str, Any]] = []
    collections: list[dict[str, Any]] = []
    for rule in rules or ():
        if isinstance(rule, Mapping):
            debug.append(copy.deepcopy(dict(rule)))
        elif hasattr(rule, "to_profiler_rule_config_dict"):
            profile.append(_with_image(rule, rule.to_profiler_rule_config_dict()))
        elif hasattr(rule, "to_debugger_rule_config_dict"):
            debug.append(_with_image(rule, rule.to_debugger_rule_config_dict()))
            for collection in getattr(rule, "collection_configs", None) or ():
                fields = _fields("collection_configs", collection)
                if fields not in collections:
                    collections.append(fields)
        else:
            raise SpecError(f"rules has {rule!r}; give the SageMaker SDK's rules, or dicts of DebugRuleConfigurations")
    return tuple(debug), tuple(profile), collections


def _with_image(rule: object, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the rule with its fields where its image depends on the Region, which is not known yet."""
    if fields.get("RuleEvaluatorImage") == DEFAULT_RULE_IMAGE:
        return {**fields, "RuleEvaluatorImage": rule}
    return dict(fields)


def _fields(argument: str, value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return copy.deepcopy(dict(value))
    if hasattr(value, "_to_request_dict"):
        said = value._to_request_dict()  # noqa: SLF001 - how the SageMaker SDK's classes say it
        return cast("dict[str, Any]", copy.deepcopy(said))
    raise SpecError(f"{argument} is {value!r}; give a dict of the service's fields, or the SageMaker SDK's object")
