"""Debugger, profiler and TensorBoard: off unless asked for, and the SageMaker SDK's own objects are taken."""

import pytest
from fakes.estimators import estimator

from scriptmode import SpecError

MONITORING = ("DebugHookConfig", "DebugRuleConfigurations", "ProfilerConfig", "ProfilerRuleConfigurations")
RULE = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "img"}


class FromTheSageMakerSdk:
    """An object that says its fields as the SageMaker SDK's classes do."""

    def __init__(self, fields):
        self.fields = fields

    def _to_request_dict(self):
        return self.fields


class DebuggerRule:
    def __init__(self, *collections):
        self.collection_configs = [FromTheSageMakerSdk({"CollectionName": name}) for name in collections]

    def to_debugger_rule_config_dict(self):
        return dict(RULE)


class ProfilerRule:
    def to_profiler_rule_config_dict(self):
        return dict(RULE)


def monitoring(code, **arguments):
    request = estimator(code, **arguments).request()
    return {field: request[field] for field in (*MONITORING, "TensorBoardOutputConfig") if field in request}


def test_nothing_is_switched_on_unasked(code):
    assert monitoring(code) == {}
    assert monitoring(code, debugger_hook_config=False) == {}


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        pytest.param(
            {"debugger_hook_config": True}, {"DebugHookConfig": {"S3OutputPath": "s3://out"}}, id="hook, to the output"
        ),
        pytest.param(
            {"debugger_hook_config": {"S3OutputPath": "s3://t", "HookParameters": {"a": "b"}}},
            {"DebugHookConfig": {"S3OutputPath": "s3://t", "HookParameters": {"a": "b"}}},
            id="hook as a dict",
        ),
        pytest.param(
            {"debugger_hook_config": FromTheSageMakerSdk({"S3OutputPath": None, "LocalPath": "/t"})},
            {"DebugHookConfig": {"S3OutputPath": "s3://out", "LocalPath": "/t"}},
            id="hook as an object",
        ),
        pytest.param(
            {"rules": [DebuggerRule("losses", "weights"), DebuggerRule("losses")]},
            {
                "DebugHookConfig": {
                    "S3OutputPath": "s3://out",
                    "CollectionConfigurations": [{"CollectionName": "losses"}, {"CollectionName": "weights"}],
                },
                "DebugRuleConfigurations": [RULE, RULE],
            },
            id="rules bring the hook and each collection once",
        ),
        pytest.param(
            {"rules": [ProfilerRule()]},
            {
                "ProfilerConfig": {"S3OutputPath": "s3://out", "DisableProfiler": False},
                "ProfilerRuleConfigurations": [RULE],
            },
            id="a profiler rule brings the profiler",
        ),
        pytest.param({"disable_profiler": True}, {"ProfilerConfig": {"DisableProfiler": True}}, id="profiler refused"),
        pytest.param(
            {"disable_profiler": False},
            {"ProfilerConfig": {"S3OutputPath": "s3://out", "DisableProfiler": False}},
            id="profiler asked for",
        ),
        pytest.param(
            {"profiler_config": {"ProfilingIntervalInMilliseconds": 100}},
            {"ProfilerConfig": {"S3OutputPath": "s3://out", "ProfilingIntervalInMilliseconds": 100}},
            id="profiler as a dict",
        ),
        pytest.param(
            {"tensorboard_output_config": FromTheSageMakerSdk({"S3OutputPath": "s3://tb"})},
            {"TensorBoardOutputConfig": {"S3OutputPath": "s3://tb"}},
            id="TensorBoard",
        ),
    ],
)
def test_what_is_asked_for_is_said_in_the_services_words(code, arguments, fields):
    assert monitoring(code, **arguments) == fields


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": ["loss"]}, "rules has 'loss'; give the SageMaker SDK's rules"),
        ({"debugger_hook_config": "s3://x"}, "debugger_hook_config is 's3://x'; give a dict"),
        ({"disable_profiler": True, "rules": [ProfilerRule()]}, "disable_profiler=True contradicts"),
        (
            {"disable_profiler": True, "profiler_config": {"S3OutputPath": "s3://p"}},
            "disable_profiler=True contradicts",
        ),
        ({"disable_profiler": "yes"}, "disable_profiler is 'yes'; say True or False"),
        ({"debugger_hook_config": False, "rules": [DebuggerRule()]}, "leave out debugger_hook_config=False"),
    ],
)
def test_what_cannot_be_meant_is_refused(code, arguments, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **arguments)
