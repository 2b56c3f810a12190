"""Cases of debugger, profiler, TensorBoard, and of the SageMaker config file."""

from __future__ import annotations

from sagemaker_sdk.matrix.case import LEFT_OUT, ROLE, Case, Maker, every_kind, script, tensorflow

DebuggerHookConfig, ProfilerConfig = Maker("DebuggerHookConfig"), Maker("ProfilerConfig")
CollectionConfig, TensorBoardOutputConfig = Maker("CollectionConfig"), Maker("TensorBoardOutputConfig")
Rule, ProfilerRule = Maker("Rule.custom"), Maker("ProfilerRule.custom")

EVALUATOR = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
HOOK = DebuggerHookConfig(
    s3_output_path="s3://bucket/debug", container_local_output_path="/opt/ml/tensors",
    hook_parameters={"save_interval": "10"},
    collection_configs=[CollectionConfig("losses", {"save_interval": "5"})],
)  # fmt: skip
COLLECTIONS = DebuggerHookConfig(collection_configs=[CollectionConfig(name) for name in ("all", "biases", "losses")])
RULE = Rule(
    name="vanishing", image_uri=EVALUATOR, instance_type="ml.t3.medium", volume_size_in_gb=5,
    rule_parameters={"rule_to_invoke": "VanishingGradient", "threshold": "0.1"},
    collections_to_save=[CollectionConfig("weights")],
)  # fmt: skip
PROFILER_RULE = ProfilerRule(
    name="report", image_uri=EVALUATOR, instance_type="ml.t3.medium", volume_size_in_gb=10,
    rule_parameters={"rule_to_invoke": "ProfilerReport"},
)  # fmt: skip
StopTraining, Email = Maker("rule_configs.StopTraining"), Maker("rule_configs.Email")
ActionList = Maker("rule_configs.ActionList")
OWN_RULE = {
    "name": "own", "image_uri": EVALUATOR, "instance_type": "ml.t3.medium", "volume_size_in_gb": 5,
    "rule_to_invoke": "OwnRule",
}  # fmt: skip


def acting(*actions: object) -> dict[str, object]:
    """A rule of each kind with the same actions."""
    (made,) = actions if len(actions) == 1 else [ActionList(*actions)]
    built_in = Maker("Rule.sagemaker")(Maker("rule_configs.vanishing_gradient")(), actions=made)
    return {"rules": [Rule(**OWN_RULE, source="s3://bucket/own.py", actions=made), built_in]}


ARGUMENTS = {
    "rule that stops the job": acting(StopTraining()),
    "rule with a list of one action": acting(ActionList(Email("team@example.com"))),
    "rule with actions": acting(StopTraining(), Email("team@example.com"), Maker("rule_configs.SMS")("+123456")),
    "rule with actions among its parameters": {
        "rules": [Rule(**OWN_RULE, source="s3://bucket/own.py", rule_parameters={"action_json": "[]", "a": "1"})]
    },
    "rule with its program here": {"rules": [Rule(**OWN_RULE, source="single.py")]},
    "rule with its programs here": {"rules": [Rule(**OWN_RULE, source="library")]},
    "debugger hook": {"debugger_hook_config": HOOK},
    "debugger hook where the output is": {"debugger_hook_config": DebuggerHookConfig()},
    "debugger hook of the default bucket": {"debugger_hook_config": DebuggerHookConfig(), "output_path": LEFT_OUT},
    "debugger hook with collections": {"debugger_hook_config": COLLECTIONS},
    "debugger hook by True": {"debugger_hook_config": True},
    "no debugger hook": {"debugger_hook_config": False},
    "debugger rule": {"rules": [RULE]},
    "profiler rule": {"rules": [PROFILER_RULE]},
    "profiler": {"profiler_config": ProfilerConfig("s3://bucket/profile", 500)},
    "profiler off by its config": {"profiler_config": ProfilerConfig(disable_profiler=True)},
    "profiler off": {"disable_profiler": True},
    "TensorBoard": {"tensorboard_output_config": TensorBoardOutputConfig("s3://bucket/logs", "/opt/ml/logs")},
}

TRAINING_JOB = {
    "RoleArn": ROLE.replace("training", "of-the-config"),
    "EnableInterContainerTrafficEncryption": True,
    "EnableNetworkIsolation": True,
    "Environment": {"OF": "the config"},
    "OutputDataConfig": {"KmsKeyId": "output-of-the-config"},
    "ResourceConfig": {"VolumeKmsKeyId": "volume-of-the-config"},
    "ProfilerConfig": {"DisableProfiler": True},
    "VpcConfig": {"Subnets": ["subnet-c"], "SecurityGroupIds": ["sg-c"]},
    "Tags": [{"Key": "team", "Value": "config"}, {"Key": "cost", "Value": "config"}],
}
BUCKET = {"DefaultS3Bucket": "bucket-of-the-config", "DefaultS3ObjectKeyPrefix": "below/it"}
SAID = {
    "encrypt_inter_container_traffic": False, "enable_network_isolation": False, "environment": {"OF": "the caller"},
    "output_kms_key": "output-of-the-caller", "volume_kms_key": "volume-of-the-caller", "subnets": ["subnet-a"],
    "security_group_ids": ["sg-a"], "tags": {"team": "caller"},
}  # fmt: skip


def config(training_job: dict[str, object] | None = None, **modules: object) -> dict[str, object]:
    sagemaker: dict[str, object] = {"PythonSDK": {"Modules": modules}} if modules else {}
    if training_job is not None:
        sagemaker["TrainingJob"] = training_job
    return {"SchemaVersion": "1.0", "SageMaker": sagemaker}


def cases() -> list[Case]:
    whole = config(TRAINING_JOB)
    nowhere = {"output_path": LEFT_OUT}
    return [
        *(kind(name, given) for name, given in ARGUMENTS.items() for kind in (script, tensorflow)),
        tensorflow("debugger hook beside parameter servers", {
            "debugger_hook_config": HOOK, "distribution": {"parameter_server": {"enabled": True}}}),
        *(kind("debugger hook beside checkpoints", {
            "debugger_hook_config": HOOK, "checkpoint_s3_uri": "s3://b/c", "checkpoint_local_path": "/opt/ml/c"})
          for kind in (script, tensorflow)),
        *every_kind("config file", {"role": LEFT_OUT}, config=whole),
        *every_kind("config file and arguments", SAID, config=whole),
        *(script(f"config file's {name} alone", {}, config=config({name: value}))
          for name, value in TRAINING_JOB.items()),
        script("config file's volume key where disks take none", {"instance_type": "ml.g5.xlarge"}, config=whole),
        script("volume key where disks take none", {"instance_type": "ml.g5.xlarge", "volume_kms_key": "key"}),
        script("config file's environment and an empty one", {"environment": {}}, config=whole),
        script("config file's default bucket", nowhere, config=config(Session=BUCKET)),
        script("config file's default bucket alone", nowhere,
               config=config(Session={"DefaultS3Bucket": "bucket-of-the-config"})),
        tensorflow("config file's default bucket", nowhere, config=config(Session=BUCKET)),
        script("config file's bucket and an output path", {}, config=config(Session=BUCKET)),
        script("config file's debugger hook", {}, config=config(Estimator={"DebugHookConfig": True})),
        script("config file's refusal of the debugger", {}, config=config(Estimator={"DebugHookConfig": False})),
    ]  # fmt: skip
