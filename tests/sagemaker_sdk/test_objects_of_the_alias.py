"""The classes of ``sagemaker.debugger`` under the import alias are in requests what the SageMaker SDK v2's own are."""

import pytest

pytestmark = pytest.mark.slow

#: Expressions of a program, and for profiling rules what v2 sends of defaults that the image has itself.
CASES = """
CollectionConfig("losses", {"save_interval": "5"})
DebuggerHookConfig("s3://b/x", hook_parameters={"save_interval": "1"}, collection_configs=[CollectionConfig("losses")])
DebuggerHookConfig(s3_output_path="s3://b/x", container_local_output_path="/x")
TensorBoardOutputConfig(s3_output_path="s3://b/x", container_local_output_path="/x")
ProfilerConfig(system_monitor_interval_millis=500, s3_output_path="s3://b/x")
ProfilerConfig(disable_profiler=True)
ProfilerConfig(framework_profile_params=FrameworkProfile())
ProfilerConfig(framework_profile_params=FrameworkProfile(local_path="/x", start_step=2, num_steps=7))
ProfilerConfig(framework_profile_params=FrameworkProfile(start_unix_time=1700000000, duration=5.5))
ProfilerConfig(framework_profile_params=FrameworkProfile(detailed_profiling_config=DetailedProfilingConfig(), dataloader_profiling_config=DataloaderProfilingConfig(start_step=5)))
ProfilerConfig(framework_profile_params=FrameworkProfile(python_profiling_config=PythonProfilingConfig(num_steps=1, cprofile_timer=cProfileTimer.CPU_TIME)))
ProfilerConfig(framework_profile_params=FrameworkProfile(python_profiling_config=PythonProfilingConfig(python_profiler=PythonProfiler.PYINSTRUMENT)))
Rule.sagemaker({"DebugRuleConfiguration": {"RuleConfigurationName": "Overfit"}}, rule_parameters={"patience": "5"})
Rule.sagemaker(rule_configs.stalled_training_rule(), "name", other_trials_s3_input_paths=["s3://b/y"])
Rule.sagemaker(base_config=rule_configs.overfit(), rule_parameters={"patience": "5"}, s3_output_path="s3://b/x")
Rule.custom("a", "image", "ml.m5.large", 20, source="rule.py", rule_to_invoke="R", rule_parameters={"a": "1"})
rule_configs.StopTraining()
rule_configs.ActionList(rule_configs.StopTraining("other"), rule_configs.Email("a@b.com"), rule_configs.SMS("+4912345678"))
ProfilerRule.sagemaker(rule_configs.ProfilerReport(), name="report")
ProfilerRule.custom("a", "image", "ml.m5.large", 20, source="rule.py", rule_to_invoke="R", rule_parameters={"a": 1})
"""
PROGRAM = f"""
import json, logging
logging.disable(50)
import sagemaker.debugger
import scriptmode.v2.debugger

def without_none(fields):
    return {{name: value for name, value in fields.items() if value is not None}}

def said(value):
    if isinstance(value, dict):
        return [value, []]
    if hasattr(value, "serialize"):
        value.update_training_job_prefix_if_not_specified("job-1")
        return value.serialize()
    for name in ("to_profiler_rule_config_dict", "to_debugger_rule_config_dict", "_to_request_dict"):
        if hasattr(value, name):
            return [without_none(getattr(value, name)()), [said(each)[0] for each in (name != "_to_request_dict" and getattr(value, "collection_configs", None)) or ()]]

cases = {CASES.strip().splitlines()!r}
rules = [name for name, build in vars(scriptmode.v2.debugger.rule_configs).items() if hasattr(build, "args")]
cases += [f"{{'Rule' if name.islower() else 'ProfilerRule'}}.sagemaker(rule_configs.{{name}}())" for name in rules]
print(json.dumps([[case, *(said(eval(case, dict(names))) for names in (vars(sagemaker.debugger), vars(scriptmode.v2.debugger)))] for case in cases]))
"""


def test_debugger_objects_are_in_requests_what_those_of_v2_are(v2, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = v2.run(tmp_path, "program.py")
    assert len(found) > 35
    differing = []
    for case, theirs, ours in found:
        if case.startswith("ProfilerRule.sagemaker("):
            # v2 sends the defaults of parameters, which the image has itself.
            theirs[0]["RuleParameters"] = {"rule_to_invoke": theirs[0]["RuleParameters"]["rule_to_invoke"]}
        if theirs != ours:
            differing.append((case, theirs, ours))
    assert differing == []
