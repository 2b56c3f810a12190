"""Debugger and profiler: off by default, given as dicts or by rules.

`tests/sagemaker_sdk/matrix/monitoring.py` has the SageMaker SDK's own objects.
"""

import pytest
from fakes.estimators import estimator
from fakes.host_folders import write_files

from scriptmode import Estimator, SourceError, SpecError
from scriptmode.testing import FakeSageMaker
from scriptmode.v2.debugger import ProfilerRule, Rule, rule_configs

RULE = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "img"}


class FromTheSageMakerSdk:
    """An object that says its fields as the SageMaker SDK's classes do."""

    def __init__(self, fields):
        self.fields = fields

    def _to_request_dict(self):
        return self.fields


def rule(*collections, **given):
    """Return a debugging rule of the alias that reads these collections."""
    saved = [FromTheSageMakerSdk({"CollectionName": name}) for name in collections]
    return Rule("r", "img", **{"collections_to_save": saved, **given})


PROFILER_RULE = ProfilerRule("r", "img")


def test_rules_bring_the_hook_with_each_collection_once_and_the_profiler(code):
    rules = [rule("losses", "weights"), rule("losses"), PROFILER_RULE]
    request = estimator(code, rules=rules).request()
    assert {field: value for field, value in request.items() if field.startswith(("Debug", "Profiler"))} == {
        "DebugHookConfig": {
            "S3OutputPath": "s3://out",
            "CollectionConfigurations": [{"CollectionName": "losses"}, {"CollectionName": "weights"}],
        },
        "DebugRuleConfigurations": [RULE, RULE],
        "ProfilerConfig": {"S3OutputPath": "s3://out", "DisableProfiler": False},
        "ProfilerRuleConfigurations": [RULE],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": ["loss"]}, "rules has 'loss'; give the SageMaker SDK's rules"),
        ({"rules": [rule(collections_to_save=[None])]}, "collection_configs is None; give a dict"),
        ({"debugger_hook_config": "s3://x"}, "debugger_hook_config is 's3://x'; give a dict"),
        ({"disable_profiler": True, "rules": [PROFILER_RULE]}, "disable_profiler=True contradicts"),
        ({"debugger_hook_config": False, "rules": [rule()]}, "leave out debugger_hook_config=False"),
    ],
)
def test_what_cannot_be_meant_is_refused(code, arguments, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **arguments)


def parameters(request):
    return request["DebugRuleConfigurations"][0].get("RuleParameters")


def stops(job):
    return rf"\"training_job_prefix\": \"{job}\""


def test_the_next_job_of_an_attached_or_repeated_one_is_stopped_itself(code):
    fake = FakeSageMaker()
    arguments = {"platform": None, "sagemaker_session": fake, "instance_type": "ml.m5.large"}
    job = estimator(code, rules=[rule(actions=rule_configs.StopTraining())], **arguments).fit(
        job_name="job-1", logs=False
    )
    assert stops("job-1") in parameters(job.describe())["action_json"]
    assert stops("job-2") in parameters(Estimator.attach("job-1", fake).request(job_name="job-2"))["action_json"]
    assert stops("job-3") in parameters(job.rerun(job_name="job-3").describe())["action_json"]


@pytest.mark.parametrize("kind", ["object", "dict"])
def test_a_rules_program_of_this_machine_is_stored_and_named(code, tmp_path, kind):
    program = tmp_path / "own rule.py"
    program.write_text("class OwnRule: ...\n")
    fields = {"source_s3_uri": str(program), "rule_to_invoke": "OwnRule"}
    own = rule(rule_parameters=fields) if kind == "object" else {**RULE, "RuleParameters": fields}
    made = estimator(code, rules=[own])
    request = made.request()
    uri = parameters(request)["source_s3_uri"]
    assert uri.startswith("s3://out/source/")
    assert uri.endswith("/own rule.py")
    assert made.platform.stored == {}
    made.fit(logs=False)
    assert made.platform.stored[uri] == program.read_bytes()
    assert parameters(made.platform.created[0])["source_s3_uri"] == uri
    program.write_text("class OwnRule: pass\n")
    assert parameters(made.request())["source_s3_uri"] != uri


def test_of_a_rules_folder_is_stored_what_of_a_source_folder_is_packed(code, tmp_path):
    folder = tmp_path / "rules"
    write_files(folder, {name: name for name in ("rule.py", "inner/part.py", "__pycache__/rule.cpython-311.pyc")})
    made = estimator(code, rules=[rule(rule_parameters={"source_s3_uri": str(folder)})])
    made.fit(logs=False)
    uri = parameters(made.platform.created[0])["source_s3_uri"]
    stored = {key.removeprefix(f"{uri}/"): data for key, data in made.platform.stored.items() if key.startswith(uri)}
    assert stored == {"rule.py": b"rule.py", "inner/part.py": b"inner/part.py"}
    (folder / "mine").write_text("-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(SourceError, match="has private keys: 'mine'"):
        made.request()


@pytest.mark.parametrize("source", ["nowhere/rule.py", ""], ids=["no such file", "empty"])
def test_a_rules_program_that_is_not_there_is_refused_before_anything_is_stored(code, source):
    made = estimator(code, rules=[rule(rule_parameters={"source_s3_uri": source})])
    with pytest.raises(SourceError, match=f"rule 'r': source '{source}' does not exist"):
        made.fit()
    assert made.platform.stored == {}
