"""A job with a log that a test defines, and a live view that records the last frame."""

import io
from contextlib import nullcontext
from dataclasses import replace

from fakes.platforms import RecordingPlatform

from scriptmode._core.machine.clock import SYSTEM
from scriptmode._core.spec.job_description import JobStatus
from scriptmode._core.spec.service_values import LogEvent

REQUEST = {
    "TrainingJobName": "job-1",
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    "AlgorithmSpecification": {
        "MetricDefinitions": [{"Name": "broken", "Regex": "("}, {"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    },
}


class Screen(io.StringIO):
    """A terminal of 80 x 24, which it does not say, and how often it was written to."""

    encoding = "utf-8"

    def __init__(self):
        super().__init__()
        self.frames = []

    def isatty(self):
        return True

    def write(self, text):
        self.frames.append(text)
        return super().write(text)


class Last:
    """A view that keeps what it was given last."""

    def __init__(self):
        self.snapshot = None

    def session(self):
        return nullcontext()

    def draw(self, snapshot, events):
        self.snapshot = snapshot

    close = draw


class Job(RecordingPlatform):
    """A job whose log is what the test gives; it ends when that does."""

    def __init__(self, lines, name="job-1"):
        super().__init__(["Completed"], CreationTime=SYSTEM.wall_time())
        self.created.append({**REQUEST, "TrainingJobName": name})
        self._lines = lines
        self.looks = 0

    def log_events(self, name, *, follow, on_description=None):
        on_description(replace(self.describe(name), status=JobStatus.IN_PROGRESS, secondary="Training"))
        yield from (LogEvent("algo-1", line) for line in self._lines)
        on_description(self.describe(name))

    def progress(self, name):
        self.looks += 1
        return ()
