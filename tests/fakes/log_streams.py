"""The log streams of one job, any number for each host, with tokens that expire."""

import bisect

from scriptmode.core.request.parse import parse_description
from scriptmode.testing import FakeClock


class LogStreams:
    """Stands where a boto3 session would: Amazon CloudWatch Logs alone. Times are seconds of its clock."""

    region_name = "eu-west-1"

    def __init__(self, *, hosts, page=100):
        self.clock = FakeClock()
        self.hosts = hosts
        self.page = page
        self.transitions = []
        self.ends_at = 0
        #: Tokens that were given before each of these are refused from then on.
        self.tokens_end_at = []
        self.refused = 0
        self._lines = {}

    def write(self, second, stream, *texts):
        """Add lines to a stream of the job, all with the timestamp of a second."""
        self._lines.setdefault(f"job-1/{stream}", []).extend((second, text) for text in texts)

    def describe(self):
        """Return a description of the job."""
        now = self.clock.now()
        response = {
            "TrainingJobStatus": "Completed" if now >= self.ends_at else "InProgress",
            "ResourceConfig": {"InstanceCount": self.hosts},
            "SecondaryStatusTransitions": next((told for at, told in reversed(self.transitions) if at <= now), []),
        }
        return parse_description(response)

    def client(self, _service, **_settings):
        return self

    def get_paginator(self, operation):
        assert operation == "describe_log_streams"
        return self

    def paginate(self, *, logGroupName, logStreamNamePrefix):  # noqa: N803 - boto3's names
        assert logGroupName == "/aws/sagemaker/TrainingJobs"
        for name in sorted(self._lines):
            if name.startswith(logStreamNamePrefix) and self._known(name):
                yield {"logStreams": [{"logStreamName": name}]}

    def get_log_events(self, *, logGroupName, logStreamName, startFromHead, nextToken=None, startTime=0):  # noqa: N803 - boto3's names
        assert logGroupName == "/aws/sagemaker/TrainingJobs"
        assert startFromHead
        lines, now = self._known(logStreamName), self.clock.now()
        position = bisect.bisect_left([1000 * second for second, _ in lines], startTime)
        epoch = bisect.bisect_right(self.tokens_end_at, now)
        if nextToken is not None:
            given, position = map(int, nextToken.split("/"))
            if given != epoch:
                self.refused += 1
                raise self._refusal()
        end = min(position + self.page, len(lines))
        events = [{"timestamp": 1000 * second, "message": text} for second, text in lines[position:end]]
        return {"events": events, "nextForwardToken": f"{epoch}/{end}"}

    def _known(self, name):
        return [line for line in self._lines[name] if line[0] <= self.clock.now()]

    def _refusal(self):
        from botocore.exceptions import ClientError

        error = {"Code": "InvalidParameterException", "Message": "The specified nextToken is invalid."}
        return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, "GetLogEvents")
