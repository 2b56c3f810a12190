"""A platform that records its calls and replays the statuses of a job: a fast replacement of the real ones."""

from dataclasses import replace

from scriptmode._core.machine.clock import SYSTEM
from scriptmode._core.request.parse import parse_description
from scriptmode._core.request.render import as_fields
from scriptmode._core.spec.service_values import ANY_JOB, LogEvent, Metric
from scriptmode.errors import JobNotFoundError


class RecordingPlatform:
    poll_seconds = 0.001
    clock = SYSTEM
    region = "eu-west-1"

    def __init__(self, life=("InProgress", "Completed"), **extra):
        self.life = list(life)
        self.extra = extra
        self.stored = {}
        self.keys = {}
        self.created = []
        self.stopped = []

    def complete(self, spec):
        output = replace(
            spec.output,
            path=spec.output.path or "s3://out",
            code_location=spec.output.code_location or "s3://out/source",
        )
        return replace(spec, role=spec.role or "arn:aws:iam::000000000000:role/none", output=output)

    def validate(self, request):
        self.validated = as_fields(request)

    def put_source(self, archive, uri, *, kms_key=None, role=None):
        self.stored[uri] = archive
        self.keys[uri] = kms_key

    def create(self, request):
        self.created.append(as_fields(request))
        return self._arn(self.created[-1]["TrainingJobName"])

    def describe(self, name):
        for request in self.created:
            if request["TrainingJobName"] == name:
                status = self.life.pop(0) if len(self.life) > 1 else self.life[0]
                response = {
                    **request, "TrainingJobArn": self._arn(name), "TrainingJobStatus": status,
                    "SecondaryStatus": status, **self.extra,
                }  # fmt: skip
                return parse_description(response)
        raise JobNotFoundError(f"training job {name} is not known")

    def tags(self, description):
        return {tag["Key"]: tag["Value"] for tag in description.response.get("Tags", ())}

    def stop(self, name, *, now=False):
        self.stopped.append(name)

    def log_events(self, name, *, follow, on_description=None):
        yield LogEvent("algo-1", "one")
        yield LogEvent("algo-2", "two")

    def metrics(self, description):
        return [Metric("loss", 0.5)]

    def events(self, name):
        return ()

    progress = events

    def activity(self, name):
        return {}

    log_locations = activity

    def failure(self, description):
        return None

    def queue_position(self, name):
        return 0

    def with_settings_of(self, name):
        return self

    def planned_script(self, *_):
        return ""

    describe_crowding = planned_script

    def fetch(self, uri, folder):
        raise NotImplementedError

    def list(self, which=ANY_JOB):
        return [self.describe(request["TrainingJobName"]) for request in self.created]

    def _arn(self, name):
        return f"arn:aws:sagemaker:eu-west-1:000000000000:training-job/{name}"
