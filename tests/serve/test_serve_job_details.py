"""What a job on this machine shows is shown of a job of a server elsewhere, through the calls of SageMaker's API."""

from types import SimpleNamespace

import boto3
import pytest
from fakes.processes import until

from scriptmode import TrainingJob
from scriptmode._core.platforms.sagemaker import SageMakerPlatform
from scriptmode._core.platforms.sagemaker.job_details import JobDetails
from scriptmode.errors import PlatformError, RequestError
from scriptmode_local import LocalPlatform

pytestmark = pytest.mark.slow
BUSY = "import time\nprint('50%', end='', flush=True)\nwhile True: sum(range(10**5))"


@pytest.fixture
def of_a_job(api, no_settings, monkeypatch):
    """Return a job as the server tells of it, and as its own machine does."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", api.server.url)
    session = boto3.Session("test", "test", region_name="us-east-1")
    here = LocalPlatform(data_dir=api.folder / "data")
    return lambda name: (TrainingJob(name, SageMakerPlatform(session)), TrainingJob(name, here))


def test_the_structured_failure_and_the_events_are_those_of_the_jobs_machine(api, of_a_job):
    ended = api.run("raise KeyError('no ~/.local/share/scriptmode/jobs')", name="fails")
    # No word of the text is hidden.
    assert "no ~/.local/share/scriptmode/jobs" in ended["FailureReason"]
    served, here = of_a_job("fails")
    assert served.failure == here.failure
    assert (served.failure.host, served.failure.exit_code, served.failure.exception) == ("algo-1", 1, "KeyError")
    assert served.events == here.events == ()
    assert served.activity() == {}


def test_each_value_of_a_metric_is_told_with_its_host_and_step_and_the_time_of_its_line(api, of_a_job):
    request = api.request("for step in range(3): print(f'step {step} - loss={step / 2}')")
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*)"}]
    request["ResourceConfig"]["InstanceCount"] = 2
    api.sagemaker.create_training_job(**request)
    ended = api.wait(request["TrainingJobName"])
    jobs = of_a_job(request["TrainingJobName"])
    served, here = (job.metrics() for job in jobs)
    assert [{**row, "timestamp": None} for row in served] == here
    assert len(served) == len(served.lines()) == 6
    assert all(ended["TrainingStartTime"] <= row["timestamp"] <= ended["TrainingEndTime"] for row in served)
    told, own = (TrainingJob.list(job.platform, name_contains=job.name, limit=1)[0] for job in jobs)
    assert {**own, **{field: told[field] for field in told if field.endswith("Time")}} == told
    assert (told["InstanceCount"], told["LastMetric"]["Value"]) == (2, 1.0)


def test_the_activity_and_the_channels_of_a_running_job_are_told(api, of_a_job, tmp_path):
    data = api.folder / "some data"
    data.write_bytes(bytes(3000))
    where = {"S3DataType": "S3Prefix", "S3Uri": data.as_uri()}
    served, here = of_a_job(
        api.start(BUSY, InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": where}}])
    )
    # The line may come after the first sample of the CPU.
    activity = until(lambda: (told := served.activity().get("algo-1")) and told.cpu_percent and told.line and told)
    assert (activity.line, activity.memory_bytes > 0) == ("50%", True)
    (channel,) = until(lambda: served.platform.progress(served.name))
    assert (channel, channel.done) == (*here.platform.progress(here.name), 3000)
    assert served.platform.queue_position(served.name) == 0


def test_a_service_that_does_not_know_the_operation_is_asked_once_and_amazon_never():
    asked, errors = [], [RequestError("a wrong filter"), PlatformError("UnknownOperationException")]

    def refuse(subject, _call):
        asked.append(subject)
        raise errors.pop(0)

    def details(url):
        meta = SimpleNamespace(endpoint_url=url)
        return JobDetails(SimpleNamespace(client=lambda _: SimpleNamespace(meta=meta), call=refuse))

    amazon, other = details("https://api.sagemaker.us-east-1.amazonaws.com"), details("http://lab:5000")
    assert [service.read("job", "Events") for service in (amazon, other, other, other)] == [None] * 4
    assert (asked, amazon.are_known, other.are_known) == (["training job job"] * 2, False, False)
