"""Debugger, profiler and TensorBoard: off unless asked for, and the SageMaker SDK's own objects are taken."""

import pytest
from fakes.estimators import estimator

from scriptmode import Estimator, SourceError, SpecError
from scriptmode.testing import FakeSageMaker

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
        ({"disable_profiler": "yes"}, "disable_profiler is 'yes'; give True or False"),
        ({"debugger_hook_config": False, "rules": [DebuggerRule()]}, "leave out debugger_hook_config=False"),
    ],
)
def test_what_cannot_be_meant_is_refused(code, arguments, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **arguments)


class StopTraining:
    """An action of the SageMaker SDK's rules: it names the job that it stops when it is asked to."""

    prefix = ""

    def update_training_job_prefix_if_not_specified(self, training_job_name):
        self.prefix = training_job_name

    def serialize(self):
        return rf"{{\"name\": \"stoptraining\", \"training_job_prefix\": \"{self.prefix}\"}}"


class CustomRule(DebuggerRule):
    def __init__(self, actions=None, **parameters):
        super().__init__()
        self.actions = actions
        self.parameters = parameters

    def to_debugger_rule_config_dict(self):
        return {**RULE, "RuleParameters": self.parameters}


def parameters(request):
    (rule,) = request["DebugRuleConfigurations"]
    return rule.get("RuleParameters")


def stops(job):
    return rf"\"training_job_prefix\": \"{job}\""


def test_a_rules_actions_name_the_job_of_each_request(code):
    action = StopTraining()
    made = estimator(code, rules=[CustomRule(action, threshold="1")])
    for job in ("job-1", "job-2"):
        sent = parameters(made.request(job_name=job))
        assert sent["threshold"] == "1"
        assert stops(job) in sent["action_json"]
    assert action.prefix == ""


def test_a_rule_without_actions_has_none_by_its_parameters(code):
    assert parameters(estimator(code, rules=[CustomRule(action_json="[]")]).request()) is None


def test_the_next_job_of_an_attached_or_repeated_one_is_stopped_itself(code):
    fake = FakeSageMaker()
    arguments = {"platform": None, "sagemaker_session": fake, "instance_type": "ml.m5.large"}
    job = estimator(code, rules=[CustomRule(StopTraining())], **arguments).fit(job_name="job-1", logs=False)
    assert stops("job-1") in parameters(job.describe())["action_json"]
    assert stops("job-2") in parameters(Estimator.attach("job-1", fake).request(job_name="job-2"))["action_json"]
    assert stops("job-3") in parameters(job.rerun(job_name="job-3").describe())["action_json"]


@pytest.mark.parametrize("kind", ["object", "dict"])
def test_a_rules_program_of_this_machine_is_stored_and_named(code, tmp_path, kind):
    program = tmp_path / "own rule.py"
    program.write_text("class OwnRule: ...\n")
    fields = {"source_s3_uri": str(program), "rule_to_invoke": "OwnRule"}
    rule = CustomRule(**fields) if kind == "object" else {**RULE, "RuleParameters": fields}
    made = estimator(code, rules=[rule])
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


def test_a_rules_folder_is_stored_file_by_file(code, tmp_path):
    for name in ("rule.py", "inner/part.py"):
        (tmp_path / "rules" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "rules" / name).write_text(name)
    made = estimator(code, rules=[CustomRule(source_s3_uri=str(tmp_path / "rules"))])
    made.fit(logs=False)
    uri = parameters(made.platform.created[0])["source_s3_uri"]
    assert {made.platform.stored[f"{uri}/{name}"] for name in ("rule.py", "inner/part.py")} == {
        b"rule.py",
        b"inner/part.py",
    }


def test_of_a_rules_folder_is_stored_what_of_a_source_folder_is_packed(code, tmp_path):
    folder = tmp_path / "rule"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__/rule.cpython-311.pyc").write_bytes(b"differs on each machine")
    (folder / "rule.py").write_text("class OwnRule: ...")
    made = estimator(code, rules=[CustomRule(source_s3_uri=str(folder))])
    made.fit(logs=False)
    assert not [uri for uri in made.platform.stored if uri.endswith(".pyc")]
    (folder / ".env").write_text("PASSWORD=hunter2")
    with pytest.raises(SourceError, match="files that look like secrets: '.env'"):
        made.request()


def test_an_empty_rules_program_is_not_the_current_folder(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("private")
    with pytest.raises(SourceError, match=r"rule 'r': source '' does not exist"):
        estimator(code, rules=[CustomRule(source_s3_uri="")]).request()


def test_a_rules_program_that_is_not_there_is_refused_before_anything_is_stored(code):
    made = estimator(code, rules=[CustomRule(source_s3_uri="nowhere/rule.py")])
    with pytest.raises(
        SourceError, match=r"rule 'r': source 'nowhere/rule.py' does not exist .*give the rule's Python"
    ):
        made.fit()
    assert made.platform.stored == {}


def test_a_plan_says_where_a_rules_program_is_stored(code, tmp_path):
    (tmp_path / "rule.py").touch()
    arguments = {"platform": None, "sagemaker_session": FakeSageMaker(), "instance_type": "ml.m5.large"}
    made = estimator(code, rules=[CustomRule(source_s3_uri=str(tmp_path / "rule.py"))], **arguments)
    assert any(f"rule 'r': {tmp_path}/rule.py is stored at s3://" in note for note in made.plan().assumed)
