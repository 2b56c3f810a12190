"""A platform that records what it is given and plays a job's life as told: for speed, beside the real ones."""

from scriptmode.errors import JobNotFoundError
from scriptmode.platforms import LogEvent, PlatformDefaults


class RecordingPlatform:
    poll_seconds = 0.001

    def __init__(self, life=("InProgress", "Completed"), **extra):
        self.life = list(life)
        self.extra = extra
        self.stored = {}
        self.created = []
        self.stopped = []

    def check(self, spec):
        self.checked = spec

    def defaults(self, role):
        return PlatformDefaults(
            role or "arn:aws:iam::000000000000:role/none", "eu-west-1", "s3://out", "s3://out/source"
        )

    def put_source(self, archive, uri):
        self.stored[uri] = archive

    def create(self, request):
        self.created.append(request)
        return f"arn:aws:sagemaker:eu-west-1:000000000000:training-job/{request['TrainingJobName']}"

    def describe(self, name):
        for request in self.created:
            if request["TrainingJobName"] == name:
                status = self.life.pop(0) if len(self.life) > 1 else self.life[0]
                return {**request, "TrainingJobStatus": status, "SecondaryStatus": status, **self.extra}
        raise JobNotFoundError(f"training job {name} is not known")

    def stop(self, name):
        self.stopped.append(name)

    def log_events(self, name, *, follow):
        yield LogEvent("algo-1", "one")
        yield LogEvent("algo-2", "two")

    def list(self):
        return [self.describe(request["TrainingJobName"]) for request in self.created]
