"""`SageMakerPlatform`: a platform by calls of Amazon SageMaker, in as few calls as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scriptmode import errors
from scriptmode._core.aws.session import Connection
from scriptmode._core.platforms.sagemaker import job_defaults
from scriptmode._core.request.render import as_fields, render_request

if TYPE_CHECKING:
    from scriptmode._core.aws.sagemaker_config import SageMakerConfig
    from scriptmode._core.platforms.sagemaker.cloudwatch_logs import LogTail
    from scriptmode._core.platforms.sagemaker.job_buckets import JobBuckets
    from scriptmode._core.platforms.sagemaker.sagemaker_tuning import SageMakerTuning
    from scriptmode._core.platforms.sagemaker.server_details import ServerDetails
    from scriptmode._core.spec import host_values, service_values
    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec

_T = TypeVar("_T")
#: The most jobs that one answer lists (ListTrainingJobs, Amazon SageMaker API).
_PAGE = 100
#: Seconds for which a user waits at a prompt while AWS does not answer.
_SHORT_RETRY_SECONDS = 30.0
#: Fields whose enumerations are not checked: AWS adds instance types that the installed boto3 does not know.
_OPEN_ENUMERATIONS = (
    *(f"ResourceConfig.{part}InstanceType" for part in ("", "InstanceGroups.", "InstancePreferences.")),
    *(f"{kind}RuleConfigurations.InstanceType" for kind in ("Debug", "Profiler")),
)


class SageMakerPlatform:
    """Training jobs of one account and Region, or of a `scriptmode serve`.

    ``session`` is a boto3 session or the session of an installed ``sagemaker``, v2 or v3; by default boto3's own
    settings. boto3 is imported by the first call that needs it.
    """

    def __init__(self, session: Any = None) -> None:
        #: The session, Region and clients of the calls.
        self.connection = Connection(session)
        #: The clock of the session if it has one, else this machine's.
        self.clock = self.connection.clock

    @property
    def poll_seconds(self) -> float:
        """Seconds between two requests: less to `scriptmode serve`, which has a status and a line at once."""
        return 0.5 if self._details.are_known else 5.0

    @property
    def region(self) -> str:
        """The session's Region."""
        return self.connection.region

    @cached_property
    def tuning(self) -> SageMakerTuning:
        """The tuning jobs of the account."""
        from scriptmode._core.platforms.sagemaker.sagemaker_tuning import SageMakerTuning

        return SageMakerTuning(self.connection, self._buckets.prepare_output)

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in role, VPC, keys and the like from the SageMaker config file, the image, and the default bucket."""
        job_defaults.check_locations(spec)
        return job_defaults.apply_defaults(spec, self._config, self.connection)

    def validate(self, request: JobRequest | Mapping[str, Any]) -> None:
        """Check a request against the service's own model, limits, enumerations and patterns included."""
        from scriptmode._core.request import service_model

        if violations := [*service_model.violations(as_fields(request), lambda field, _: field in _OPEN_ENUMERATIONS)]:
            from scriptmode._core.request.violation_texts import raise_violations

            raise_violations("Amazon SageMaker would refuse this job", violations)

    def describe_crowding(self, job: JobRequest, jobs: int) -> str:  # noqa: ARG002 - whatever the job has
        """Return "": only the service knows its machines."""
        return ""

    def planned_hosts(self, request: JobRequest) -> dict[str, host_values.PlannedHost]:
        """Return what each host would find, without what its image adds, which is unknown here."""
        from scriptmode._core.platforms.sagemaker.host_secret import with_host_secret
        from scriptmode_local._opt_ml import planned_containers

        return planned_containers.plan_sagemaker_hosts(with_host_secret(request), self.region)

    def put_source(self, archive: bytes, uri: str, *, kms_key: str | None = None, role: str | None = None) -> None:
        """Upload the archive unless the object exists: its name has the digest of its source."""
        self._buckets.upload(archive, uri, kms_key, role)

    def create(self, request: JobRequest) -> str:
        """Call CreateTrainingJob; if its response was lost, find out whether the job was started."""
        from scriptmode._core.platforms.sagemaker.host_secret import with_host_secret

        fields = render_request(with_host_secret(request))
        self._buckets.prepare_output(str(request.output.path), str(request.role))
        try:
            return str(self._call(request.name, lambda client: client.create_training_job(**fields))["TrainingJobArn"])
        except errors.JobNotFoundError as error:
            # A resource of the request was not found: data, a role, an experiment.
            raise errors.RequestError(str(error)) from error
        except (errors.TransientError, errors.JobExistsError) as error:
            if arn := self._find_started(fields, error):
                return arn
            raise

    def describe(self, name: str) -> JobDescription:
        """Call DescribeTrainingJob."""
        from scriptmode._core.request.parse import parse_description

        return parse_description(self._call(name, lambda client: client.describe_training_job(TrainingJobName=name)))

    def failure(self, description: JobDescription) -> Failure | None:
        """Return why a described job failed: as the service recorded it, or where it does not from a host's log.

        SageMaker keeps only the text of the failure file, which other images than this project's may leave empty.
        Return None if FailureReason says why, or if no log does.
        """
        from scriptmode._core.spec import foreign_failure
        from scriptmode._core.spec.failure_text import split_failure_reason

        if recorded := self._details.failure(description.name):
            return recorded
        text, code = split_failure_reason(description.failure_reason)
        if not description.failure_reason.startswith("AlgorithmError") or not foreign_failure.lacks_reason(text):
            return None
        ends = self._log_tail(description.name, retry_seconds=0).read_ends(foreign_failure.LINES)
        failures = (foreign_failure.describe_foreign_failure(host, code, text, log)[1] for host, log in ends.items())
        return next((failure for failure in failures if failure.exception), None)

    def tags(self, description: JobDescription) -> dict[str, str]:
        """Call ListTags for every page."""
        selection = {"ResourceArn": description.arn}
        tags = self.connection.list_all(f"training job {description.name}", "sagemaker", "list_tags", "Tags", selection)
        return {tag["Key"]: tag["Value"] for tag in tags}

    def stop(self, name: str, *, now: bool = False) -> None:
        """Call StopTrainingJob, unless the job has ended; raise `SpecError` for ``now``, which the service lacks."""
        if now:
            what = f"training job {name} cannot be stopped now: Amazon SageMaker's API has no such stop"
            raise errors.SpecError(what, "leave now out", argument="now")
        if not self.describe(name).has_ended:
            try:
                self._call(name, lambda client: client.stop_training_job(TrainingJobName=name))
            except errors.RequestError:
                # The job may have ended between the two calls.
                if not self.describe(name).has_ended:
                    raise

    def update(self, name: str, **changes: Mapping[str, object]) -> None:
        """Call UpdateTrainingJob with fields of its request."""
        self._call(name, lambda client: client.update_training_job(TrainingJobName=name, **changes))

    def log_events(
        self, name: str, *, follow: bool, on_description: Callable[[JobDescription], None] | None = None
    ) -> Iterator[service_values.LogEvent]:
        """Read the job's CloudWatch log streams, one per host; with ``follow`` until the job has ended."""
        if not follow:
            return self._log_tail(name, _SHORT_RETRY_SECONDS).read_available()
        return self._log_tail(name).follow(lambda: self.describe(name), on_description)

    def _log_tail(self, name: str, retry_seconds: float | None = None) -> LogTail:
        from scriptmode._core.platforms.sagemaker.cloudwatch_logs import LogTail

        return LogTail(name, self.connection, self.poll_seconds, retry_seconds)

    def metrics(self, description: JobDescription) -> list[service_values.Metric]:
        """Return every value where `scriptmode serve` tells them; else read those of CloudWatch, by the minute."""
        from scriptmode._core.platforms.sagemaker.cloudwatch_metrics import read_metrics

        return self._details.metrics(description.name) or read_metrics(description.response, self.connection)

    def host_folders(self, name: str) -> dict[str, Path]:  # noqa: ARG002 - whichever job it is
        """Return nothing: the hosts' directories are the service's."""
        return {}

    def progress(self, name: str) -> tuple[host_values.ChannelProgress, ...]:
        """Return what `scriptmode serve` tells; nothing for Amazon SageMaker."""
        return self._details.channels(name)

    def activity(self, name: str) -> dict[str, host_values.HostActivity]:
        """Return what `scriptmode serve` tells; nothing for Amazon SageMaker."""
        return self._details.activity(name)

    def stacks(self, name: str) -> dict[str, str]:
        """Raise `SpecError`: nothing asks the service's hosts."""
        raise errors.SpecError("stacks are of jobs of this machine", f"look at the log: scriptmode logs -f {name}")

    def events(self, name: str) -> tuple[service_values.JobEvent, ...]:
        """Return what `scriptmode serve` tells; nothing for Amazon SageMaker."""
        return self._details.events(name)

    def queue_position(self, name: str) -> int:
        """Return the position that `scriptmode serve` tells; 0 for Amazon SageMaker."""
        return self._details.queue_position(name)

    @cached_property
    def _details(self) -> ServerDetails:
        from scriptmode._core.platforms.sagemaker.server_details import ServerDetails

        return ServerDetails(self.connection)

    def with_settings_of(self, name: str) -> SageMakerPlatform:  # noqa: ARG002 - whichever job it is
        """Return this platform: a description has all settings of a job."""
        return self

    def planned_script(self, request: JobRequest) -> str:  # noqa: ARG002 - whichever job it is
        """Return "": no job starts from a batch script."""
        return ""

    def log_locations(self, name: str) -> dict[str, str]:
        """Return each host's CloudWatch log group and latest stream, by asking CloudWatch which streams there are."""
        return self._log_tail(name, retry_seconds=0).stream_locations()

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Download the object, or all objects below the prefix, ``uri``."""
        return self.connection.s3.fetch(uri, folder)

    def list(self, which: service_values.JobFilter) -> list[dict[str, Any]]:
        """Call ListTrainingJobs, or `scriptmode serve`'s own, for every page; the service filters the jobs."""
        selection = {
            "NameContains": which.name_contains,
            "StatusEquals": which.status,
            "CreationTimeAfter": which.created_after,
            "CreationTimeBefore": which.created_before,
            "SortBy": "CreationTime",
            "SortOrder": "Descending",
            "PaginationConfig": {"MaxItems": which.limit, "PageSize": min(which.limit or _PAGE, _PAGE)},
        }
        given = {key: value for key, value in selection.items() if value is not None}
        listed = ("the list of training jobs", "sagemaker", "list_training_jobs", "TrainingJobSummaries", given)
        return self._details.summaries(given) or self.connection.list_all(*listed)

    @cached_property
    def _config(self) -> SageMakerConfig:
        return self.connection.read_config("the config of sagemaker_session")

    @cached_property
    def _buckets(self) -> JobBuckets:
        from scriptmode._core.platforms.sagemaker.job_buckets import JobBuckets

        return JobBuckets(self.connection, self._config.default_bucket)

    def _call(self, name: str, call: Callable[[Any], _T]) -> _T:
        return self.connection.call(f"training job {name}", lambda: call(self.connection.client("sagemaker")))

    def _find_started(self, request: Mapping[str, Any], error: errors.PlatformError) -> str | None:
        """Return the ARN of the job whose response was lost; ``None`` where it does not exist or is another job."""
        # Errors of botocore's HTTP client have a response too, None if none arrived.
        response = getattr(error.__cause__, "response", None) or {}
        if isinstance(error, errors.JobExistsError) and not response.get("ResponseMetadata", {}).get("RetryAttempts"):
            return None
        name = str(request["TrainingJobName"])
        try:
            started = self.describe(name).response
        except errors.JobNotFoundError:
            return None
        except errors.PlatformError:
            raise errors.TransientError(f"{error}. It may have been started: scriptmode describe {name}") from error
        same = all((started.get(field) or {}) == (request.get(field) or {}) for field in ("RoleArn", "HyperParameters"))
        return str(started["TrainingJobArn"]) if same else None
