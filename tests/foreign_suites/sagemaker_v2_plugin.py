"""This project's estimators with the calls of the SageMaker SDK's session that its unit tests look at.

A test's session is a mock. Here the request of a job is rendered for a fake account and handed to the mock's ``train``
with the arguments that the SDK derives such a request from.
"""

import scriptmode
from scriptmode.testing import FakeSageMaker

#: An argument of ``sagemaker.Session.train``, and where the request has it. These are always given.
ALWAYS = {
    "input_mode": "AlgorithmSpecification.TrainingInputMode",
    "input_config": "InputDataConfig",
    "role": "RoleArn",
    "job_name": "TrainingJobName",
    "output_config": "OutputDataConfig",
    "resource_config": "ResourceConfig",
    "hyperparameters": "HyperParameters",
    "stop_condition": "StoppingCondition",
    "retry_strategy": "RetryStrategy",
    "tags": "Tags",
    "vpc_config": "VpcConfig",
    "metric_definitions": "AlgorithmSpecification.MetricDefinitions",
    "environment": "Environment",
    "enable_network_isolation": "EnableNetworkIsolation",
    "experiment_config": "ExperimentConfig",
}
#: These are given if the request has them.
OPTIONAL = {
    "image_uri": "AlgorithmSpecification.TrainingImage",
    "container_entry_point": "AlgorithmSpecification.ContainerEntrypoint",
    "container_arguments": "AlgorithmSpecification.ContainerArguments",
    "training_image_config": "AlgorithmSpecification.TrainingImageConfig",
    "enable_sagemaker_metrics": "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries",
    "encrypt_inter_container_traffic": "EnableInterContainerTrafficEncryption",
    "use_spot_instances": "EnableManagedSpotTraining",
    "checkpoint_s3_uri": "CheckpointConfig.S3Uri",
    "checkpoint_local_path": "CheckpointConfig.LocalPath",
    "debugger_hook_config": "DebugHookConfig",
    "debugger_rule_configs": "DebugRuleConfigurations",
    "tensorboard_output_config": "TensorBoardOutputConfig",
    "profiler_config": "ProfilerConfig",
    "profiler_rule_configs": "ProfilerRuleConfigurations",
    "infra_check_config": "InfraCheckConfig",
    "remote_debug_config": "RemoteDebugConfig",
    "session_chaining_config": "SessionChainingConfig",
}


def value(request, path):
    for name in path.split("."):
        request = request.get(name) if request else None
    return request


def train_arguments(request, roles):
    found = {name: value(request, path) for name, path in OPTIONAL.items()}
    found = {name: each for name, each in found.items() if each is not None}
    always = {name: value(request, path) for name, path in ALWAYS.items()}
    always["enable_network_isolation"] = bool(always["enable_network_isolation"])
    always["hyperparameters"] = always["hyperparameters"] or {}
    # The mock expands a name to itself.
    always["role"] = {arn: name for name, arn in roles.items()}.get(always["role"], always["role"])
    return {**always, **found}


class _Adapted:
    def __init__(self, *positional, **named):
        self.mock = mock = named.get("sagemaker_session")
        if mock is not None:
            account = FakeSageMaker(region_name=mock.boto_region_name)
            account.sagemaker_config = mock.sagemaker_config
            account.roles.update({name: f"arn:aws:iam::123456789012:role/{name}" for name in ("Dummy", "DummyRole")})
            self.account = account
            prefix = mock.default_bucket_prefix
            named["sagemaker_session"] = scriptmode.Session(
                account, default_bucket="mybucket", default_bucket_prefix=prefix
            )
        if "training_image_uri" in vars(type(self)):  # a framework of the tests with an image of its own
            named.setdefault("image_uri", self.training_image_uri())
        super().__init__(*positional, **named)

    def fit(self, inputs=None, wait=True, logs="All", job_name=None, experiment_config=None):  # noqa: FBT002 - as the SDK's
        request = self.request(inputs, job_name=job_name, experiment_config=experiment_config)
        self.mock.train(**train_arguments(request, self.account.roles))
        if wait:
            self.mock.logs_for_job(request["TrainingJobName"], wait=True, log_type=logs)


class Estimator(_Adapted, scriptmode.Estimator):
    pass


class TensorFlow(_Adapted, scriptmode.TensorFlow):
    pass


class Framework(Estimator):
    """The base of the frameworks that the tests define."""

    def __init__(self, entry_point, **named):
        super().__init__(entry_point=entry_point, **named)


class _TrainingJob:
    def __init__(self, sagemaker_session, job_name):
        self.sagemaker_session = sagemaker_session

    @classmethod
    def start_new(cls, estimator, inputs, experiment_config):
        estimator.fit(inputs, wait=False, experiment_config=experiment_config)
        return cls(estimator.mock, None)
