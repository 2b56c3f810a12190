"""`SageMakerTuning`: tuning jobs by calls of Amazon SageMaker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scriptmode._core.aws.session import Connection
from scriptmode._core.platforms.sagemaker.host_secret import with_host_secret
from scriptmode._core.request import service_model, tuning
from scriptmode._core.request.parse import parse_request
from scriptmode._core.request.violation_texts import raise_violations
from scriptmode._core.spec.service_values import ENDED
from scriptmode.errors import JobNotFoundError, RequestError

#: Entries of ``Environment`` that the service takes (HyperParameterTrainingJobEnvironmentMap).
_MOST_VARIABLES = 48
#: Instance types: AWS adds some that the installed boto3 does not know.
_OPEN_ENUMERATIONS = tuple(f"ResourceConfig.{part}InstanceType" for part in ("", "InstanceGroups.", "InstanceConfigs."))


class SageMakerTuning:
    """The tuning jobs of one account and Region.

    ``prepare_output`` creates the default bucket, called with an output path and the ARN of a role.
    """

    def __init__(self, connection: Connection, prepare_output: Callable[[str, str], None]) -> None:
        self._connection = connection
        self._prepare_output = prepare_output

    def validate(self, request: Mapping[str, Any]) -> None:
        """Check a request against the service's own model, limits, enumerations and patterns included."""
        violations = service_model.violations(
            request, lambda field, _: field.endswith(_OPEN_ENUMERATIONS), tuning.REQUEST_SHAPE
        )
        raise_violations("Amazon SageMaker would refuse this tuning job", violations)
        tuning.require_quota(request)

    def create(self, request: Mapping[str, Any]) -> str:
        """Call CreateHyperParameterTuningJob."""
        definitions = [_with_host_secret(definition) for definition in tuning.split_requests(request)]
        for definition in definitions:
            self._prepare_output(definition["OutputDataConfig"]["S3OutputPath"], definition["RoleArn"])
        name = request["HyperParameterTuningJobName"]
        is_one = tuning.DEFINITION in request
        body = {**request, **({tuning.DEFINITION: definitions[0]} if is_one else {tuning.DEFINITIONS: definitions})}
        try:
            answer = self._call(name, "create_hyper_parameter_tuning_job", body)
        except JobNotFoundError as error:
            # A resource of the request was not found: data or a role.
            raise RequestError(str(error)) from error
        return str(answer["HyperParameterTuningJobArn"])

    def describe(self, name: str) -> dict[str, Any]:
        """Call DescribeHyperParameterTuningJob."""
        return dict(self._call(name, "describe_hyper_parameter_tuning_job", {"HyperParameterTuningJobName": name}))

    def stop(self, name: str) -> None:
        """Call StopHyperParameterTuningJob, unless the tuning job has ended."""
        if self.describe(name)["HyperParameterTuningJobStatus"] not in ENDED:
            try:
                self._call(name, "stop_hyper_parameter_tuning_job", {"HyperParameterTuningJobName": name})
            except RequestError:
                # The tuning job may have ended between the two calls.
                if self.describe(name)["HyperParameterTuningJobStatus"] not in ENDED:
                    raise

    def training_jobs(self, name: str) -> list[dict[str, Any]]:
        """Call ListTrainingJobsForHyperParameterTuningJob for every page."""
        selection = {"HyperParameterTuningJobName": name, "SortBy": "CreationTime", "SortOrder": "Ascending"}
        operation = "list_training_jobs_for_hyper_parameter_tuning_job"
        subject = f"tuning job {name}"
        return self._connection.list_all(subject, "sagemaker", operation, "TrainingJobSummaries", selection)

    def _call(self, name: str, operation: str, request: Mapping[str, Any]) -> Any:
        return self._connection.call(
            f"tuning job {name}", lambda: getattr(self._connection.client("sagemaker"), operation)(**request)
        )


def _with_host_secret(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the training jobs with a secret of their hosts, where several train together."""
    definition: dict[str, Any] = request[tuning.DEFINITION]
    given = definition.get("Environment", {})
    sample = parse_request(tuning.training_request(request, "training-job", tuning.sample_values(request)))
    variables = with_host_secret(sample).environment
    if variables == given or len(variables) > _MOST_VARIABLES:
        return dict(definition)
    return {**definition, "Environment": variables}
