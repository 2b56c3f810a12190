"""SageMaker's operations on tuning jobs, called by boto3. Every answer is checked against botocore's model."""

import copy
import shutil
import time

import boto3
import pytest
from both_ways.test_jobs import TUNED as SCRIPT
from botocore.exceptions import ClientError
from fakes.local_jobs import ABSENT, channel, put
from fakes.processes import until
from serve.conftest import ENDED, TENSORFLOW, serving

from scriptmode_local import LocalPlatform
from scriptmode_local._tuning.tuning_service import LocalTuning

pytestmark = pytest.mark.slow

CONFIG, DEFINITION = "HyperParameterTuningJobConfig", "TrainingJobDefinition"
TIMES = ("CreationTime", "TrainingStartTime", "TrainingEndTime", "TrainingJobStatus")


def tuning_request(api, name, **static):
    """Return the request of a tuning job with three training jobs of a grid, two at once."""
    training = api.request(SCRIPT)
    api.names.pop()
    definition = {
        "AlgorithmSpecification": {
            "TrainingImage": TENSORFLOW,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        },
        **{name: training[name] for name in ("RoleArn", "OutputDataConfig", "StoppingCondition")},
        # As the SageMaker SDK v2 sends it.
        "HyperParameterTuningResourceConfig": training["ResourceConfig"],
        "StaticHyperParameters": {**training["HyperParameters"], "hosts": "2", **static},
    }
    config = {
        "Strategy": "Grid",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxParallelTrainingJobs": 2},
        "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "rate", "Values": ["0.25", "0.75", "0.5"]}]},
    }
    return {
        "HyperParameterTuningJobName": name, "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": definition, "Tags": [{"Key": "team", "Value": "a"}],
    }  # fmt: skip


def results(api, name):
    """Return the description of a tuning job that ended, and its training jobs."""
    name = {"HyperParameterTuningJobName": name}

    def ended():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(**name)
        return found["HyperParameterTuningJobStatus"] in ENDED and found

    rows = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job
    return until(ended), rows(**name)["TrainingJobSummaries"]


def stop(api, name):
    api.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    return results(api, name)


@pytest.fixture(scope="module")
def tuning(api):
    """The request of a tuning job that ended, its ARN and its description."""
    # The first call of S3 in memory may take longer than the check of a bucket waits.
    api.client("s3").list_buckets()
    name = f"tune-{time.time_ns() % 10**12}"
    request = tuning_request(api, name)
    ireland = boto3.Session("test", "test", region_name="eu-west-1").client("sagemaker", endpoint_url=api.server.url)
    arn = ireland.create_hyper_parameter_tuning_job(**request)["HyperParameterTuningJobArn"]
    return request, arn, results(api, name)[0]


def test_a_tuning_job_runs_its_training_jobs(api, tuning):
    request, arn, found = tuning
    assert found["HyperParameterTuningJobStatus"] == "Completed", found
    assert found["HyperParameterTuningJobArn"] == arn
    hosts = request["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"]
    assert found["TrainingJobDefinition"]["ResourceConfig"] == hosts
    assert found["BestTrainingJob"]["TunedHyperParameters"] == {"rate": "0.5"}
    best = api.sagemaker.describe_training_job(TrainingJobName=found["BestTrainingJob"]["TrainingJobName"])
    assert best["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
    assert best["TuningJobArn"] == arn
    # Both are in the region of the client.
    assert arn.startswith("arn:aws:sagemaker:eu-west-1:")
    assert best["TrainingJobArn"].startswith("arn:aws:sagemaker:eu-west-1:")
    # The service adds it, and the SDK v2 takes it out.
    assert found["TrainingJobDefinition"]["StaticHyperParameters"]["_tuning_objective_metric"] == "loss"
    assert found["TrainingJobStatusCounters"]["Completed"] == found["ObjectiveStatusCounters"]["Succeeded"] == 3
    listed = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=request["HyperParameterTuningJobName"]
    )
    for row in listed["TrainingJobSummaries"]:
        job = api.sagemaker.describe_training_job(TrainingJobName=row["TrainingJobName"])
        assert [row[field] for field in TIMES] == [job[field] for field in TIMES]
    seconds = (found["HyperParameterTuningEndTime"] - found["CreationTime"]).total_seconds()
    assert found["ConsumedResources"]["RuntimeInSeconds"] == pytest.approx(seconds, abs=1)
    assert [tag["Key"] for tag in api.sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["team"]
    # Neither the SDK nor a client sees the tags of the server.
    service = LocalTuning(LocalPlatform(data_dir=api.folder / "data"))
    assert "Tags" not in service.describe(request["HyperParameterTuningJobName"])["TrainingJobDefinition"]
    name = request["HyperParameterTuningJobName"]
    rows = api.sagemaker.list_hyper_parameter_tuning_jobs(NameContains=name, StatusEquals="Completed")
    assert [row["HyperParameterTuningJobName"] for row in rows["HyperParameterTuningJobSummaries"]] == [name]


def pages_of(api, operation, kind, **arguments):
    """Return the rows of a list, one of each page."""
    config = {"PageSize": 1}
    pages = list(api.sagemaker.get_paginator(operation).paginate(PaginationConfig=config, **arguments))
    assert all(len(page[kind]) <= 1 for page in pages)
    return [row for page in pages for row in page[kind]]


def test_training_jobs_of_a_tuning_job_are_listed_by_every_field_and_by_their_status(api, tuning):
    def listed(**arguments):
        operation = "list_training_jobs_for_hyper_parameter_tuning_job"
        name = {"HyperParameterTuningJobName": tuning[0]["HyperParameterTuningJobName"]}
        return pages_of(api, operation, "TrainingJobSummaries", **name, **arguments)

    keys = {"Name": "TrainingJobName", "CreationTime": "CreationTime", "Status": "TrainingJobStatus"}
    for order in ("Ascending", "Descending"):
        for field, key in keys.items():
            rows = [row[key] for row in listed(SortBy=field, SortOrder=order)]
            assert len(rows) == 3
            assert rows == sorted(rows, reverse=order == "Descending")
    best = [
        row["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
        for row in listed(SortBy="FinalObjectiveMetricValue", SortOrder="Descending")
    ]
    assert best == [0.25, 0.25, 0.0]
    counts = {
        status: len(listed(StatusEquals=status))
        for status in ("InProgress", "Completed", "Failed", "Stopping", "Stopped")
    }
    assert counts == {"InProgress": 0, "Completed": 3, "Failed": 0, "Stopping": 0, "Stopped": 0}


def test_tuning_jobs_are_listed_by_every_field_and_filter(api, tuning):
    request, _, found = tuning
    for name, changes in {"b": {}, "a": {"seconds": "600"}}.items():
        made = copy.deepcopy({**request, "HyperParameterTuningJobName": f"listed-{name}"})
        made[CONFIG]["ParameterRanges"]["CategoricalParameterRanges"][0]["Values"] = ["0.5"]
        made[DEFINITION]["StaticHyperParameters"].update(changes)
        api.sagemaker.create_hyper_parameter_tuning_job(**made)
    ended, _ = results(api, "listed-b")

    def listed(**arguments):
        rows = pages_of(api, "list_hyper_parameter_tuning_jobs", "HyperParameterTuningJobSummaries", **arguments)
        return [row["HyperParameterTuningJobName"].rpartition("-")[2] for row in rows]

    names = {"NameContains": "LISTED-"}
    for field, expected in {"Name": ["a", "b"], "CreationTime": ["b", "a"], "Status": ["b", "a"]}.items():
        assert listed(SortBy=field, SortOrder="Ascending", **names) == expected
        assert listed(SortBy=field, SortOrder="Descending", **names) == expected[::-1]
    assert listed(StatusEquals="Completed", **names) == ["b"]
    assert listed(StatusEquals="InProgress", **names) == ["a"]
    assert listed(CreationTimeAfter=ended["CreationTime"], **names) == ["a"]
    assert listed(CreationTimeBefore=ended["CreationTime"], **names) == []
    assert listed(LastModifiedTimeBefore=found["CreationTime"], **names) == []
    assert listed(LastModifiedTimeAfter=found["LastModifiedTime"], **names) == ["a", "b"]
    stop(api, "listed-a")


def test_errors_have_the_codes_of_aws(api, tuning):
    request, _, _ = tuning
    name = request["HyperParameterTuningJobName"]
    for same in (name, name.upper()):
        with pytest.raises(ClientError, match=f"ResourceInUse.*'{name}' already"):
            api.sagemaker.create_hyper_parameter_tuning_job(**{**request, "HyperParameterTuningJobName": same})
    operations = ("describe_hyper_parameter_tuning_job", "stop_hyper_parameter_tuning_job")
    for operation in (*operations, "list_training_jobs_for_hyper_parameter_tuning_job"):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            getattr(api.sagemaker, operation)(HyperParameterTuningJobName="none")
    with pytest.raises(ClientError, match="ValidationException.*in status Completed"):
        api.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)


def changed(request, path, value):
    """Return a request with another value of a field, without the field for None."""
    found = copy.deepcopy({**request, "HyperParameterTuningJobName": "refused"})
    put(found, path, ABSENT if value is None else value)
    return found


NUMBERS = {
    "Strategy": "Random",
    "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
    "ResourceLimits": {"MaxParallelTrainingJobs": 1, "MaxNumberOfTrainingJobs": 2},
    "ParameterRanges": {"IntegerParameterRanges": [{"Name": "layers", "MinValue": "5", "MaxValue": "4"}]},
}
#: Requests of the model that no tuning job of this machine has: the field, its value, and the message.
REFUSED = {
    "ends in the wrong order": (
        CONFIG, NUMBERS, f"{CONFIG} cannot be searched: min_value and max_value are 5 and 4; give",
    ),
    "no resources": (
        CONFIG, {**NUMBERS, "Strategy": "Hyperband"}, "HyperbandStrategyConfig.MaxResource is missing; add it",
    ),
    "too few combinations": (
        f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", 4, "is 4, but the grid has 3 combinations",
    ),
    "ranges to be chosen": (
        f"{CONFIG}.ParameterRanges",
        {"AutoParameters": [{"Name": "rate", "ValueHint": "0.5"}]},
        "AutoParameters is given, but tuning jobs on this machine do not have it",
    ),
    "a name with a fixed value": (
        f"{DEFINITION}.StaticHyperParameters.rate", "0.5", "the request has 'rate' more than once; keep one",
    ),
    "equal values": (
        f"{CONFIG}.ParameterRanges.CategoricalParameterRanges.0.Values",
        ["0.5", "0.5"],
        "the request has 'rate=0.5' more than once",
    ),
    "no ranges": (f"{CONFIG}.ParameterRanges", {}, f"{CONFIG}.ParameterRanges is missing; add it"),
    "no limit": (f"{CONFIG}.Strategy", "Random", "ResourceLimits.MaxNumberOfTrainingJobs is missing; add it"),
    "an unknown metric": (
        f"{CONFIG}.HyperParameterTuningJobObjective.MetricName",
        "gain",
        "'gain' is not one of the MetricDefinitions of TrainingJobDefinition.AlgorithmSpecification; add it",
    ),
    "no definition": (DEFINITION, None, "TrainingJobDefinition is missing; add it"),
    "a parent": (
        "WarmStartConfig",
        {
            "WarmStartType": "TransferLearning",
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "other"}],
        },
        "WarmStartConfig is given, .*; leave it out, or run the tuning job on Amazon SageMaker",
    ),
    "a missing bucket": (
        f"{DEFINITION}.OutputDataConfig.S3OutputPath",
        "s3://no-such-bucket/out",
        "TrainingJobDefinition: OutputDataConfig.S3OutputPath: .*no bucket 'no-such-bucket'",
    ),
    "missing data": (
        f"{DEFINITION}.InputDataConfig",
        [channel("train", "s3://no-such-bucket/train")],
        "TrainingJobDefinition: channel 'train': .*there is no bucket 'no-such-bucket'",
    ),
    "a missing source": (
        f"{DEFINITION}.StaticHyperParameters.sagemaker_submit_directory",
        '"s3://no-such-bucket/source.tar.gz"',
        "TrainingJobDefinition: StaticHyperParameters.sagemaker_submit_directory: .*there is no bucket 'no-such-bucket'",
    ),
    "a reserved tag": ("Tags", [{"Key": "scriptmode:tuning-job", "Value": "a"}], "'scriptmode:tuning-job' is reserved"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_tuning_job_here_can_do_is_refused(api, tuning, path, value, message):
    request = changed(tuning[0], path, value)
    with pytest.raises(ClientError, match=f"(?s)ValidationException.*{message}"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)
    found = api.sagemaker.list_hyper_parameter_tuning_jobs(NameContains=request["HyperParameterTuningJobName"])
    assert found["HyperParameterTuningJobSummaries"] == []


def with_data(api, request, name):
    """Return the request of a tuning job whose training jobs read a directory, and run one after the other."""
    folder = api.folder / name
    folder.mkdir()
    (folder / "a").touch()
    found = copy.deepcopy({**request, "HyperParameterTuningJobName": name})
    found[DEFINITION]["InputDataConfig"] = [channel("train", f"file://{folder}")]
    found[CONFIG]["ResourceLimits"]["MaxParallelTrainingJobs"] = 1
    return found, folder


NO_JOBS = {"Completed": 0, "InProgress": 0, "RetryableError": 0, "NonRetryableError": 0, "Stopped": 0}


def test_training_jobs_that_are_refused_are_neither_listed_nor_counted(api, tuning):
    request, folder = with_data(api, tuning[0], f"lost-{time.time_ns() % 10**12}")
    script = f"import shutil; shutil.rmtree({str(folder)!r}); print('loss=1')"
    source = api.request(script)["HyperParameters"]["sagemaker_submit_directory"]
    api.names.pop()
    request[DEFINITION]["StaticHyperParameters"]["sagemaker_submit_directory"] = source
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    found, rows = results(api, folder.name)
    assert found["HyperParameterTuningJobStatus"] == "Completed"
    assert found["TrainingJobStatusCounters"] == {**NO_JOBS, "Completed": 1}
    assert found["ObjectiveStatusCounters"] == {"Succeeded": 1, "Pending": 0, "Failed": 0}
    assert [row["TrainingJobStatus"] for row in rows] == ["Completed"]


def test_a_tuning_job_whose_training_jobs_are_all_refused_fails_with_the_reason(api, tuning):
    request, folder = with_data(api, tuning[0], f"none-{time.time_ns() % 10**12}")
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    # Before its agent runs.
    shutil.rmtree(folder)
    found, rows = results(api, folder.name)
    assert (found["HyperParameterTuningJobStatus"], rows) == ("Failed", [])
    reason = "No objective metrics found after running 0 training jobs: channel 'train': there is no file or"
    assert found["FailureReason"].startswith(reason)
    assert found["TrainingJobStatusCounters"] == NO_JOBS
    assert found["ObjectiveStatusCounters"] == {"Succeeded": 0, "Pending": 0, "Failed": 0}


def test_several_definitions_are_refused(api, tuning):
    config = copy.deepcopy(tuning[0][CONFIG])
    objective, ranges = config.pop("HyperParameterTuningJobObjective"), config.pop("ParameterRanges")
    shared = {"TuningObjective": objective, "HyperParameterRanges": ranges}
    shared["OutputDataConfig"] = {"S3OutputPath": "s3://several/out"}
    definitions = [{**tuning[0][DEFINITION], **shared, "DefinitionName": name} for name in ("one", "two")]
    request = {"HyperParameterTuningJobName": "several", CONFIG: config, "TrainingJobDefinitions": definitions}
    with pytest.raises(ClientError, match="TrainingJobDefinitions is given, but tuning jobs on this machine do not"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)


def test_an_ended_tuning_job_is_deleted_and_its_training_jobs_are_kept(api, tuning):
    request = copy.deepcopy({**tuning[0], "HyperParameterTuningJobName": f"deleted-{time.time_ns() % 10**12}"})
    request["TrainingJobDefinition"]["StaticHyperParameters"]["seconds"] = "600"
    # The tags of the server do not count.
    request["Tags"] = [{"Key": f"k{number}", "Value": "v"} for number in range(50)]
    name = {"HyperParameterTuningJobName": request["HyperParameterTuningJobName"]}
    described = api.sagemaker.describe_hyper_parameter_tuning_job

    def rows():
        found = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(**name)
        return found["TrainingJobSummaries"]

    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    with pytest.raises(ClientError, match="in status InProgress"):
        api.sagemaker.delete_hyper_parameter_tuning_job(**name)
    (first, *_) = until(rows)
    stop(api, request["HyperParameterTuningJobName"])
    with pytest.raises(ClientError, match="ValidationException.*in status Stopped"):
        api.sagemaker.stop_hyper_parameter_tuning_job(**name)
    api.sagemaker.delete_hyper_parameter_tuning_job(**name)
    for call in (described, api.sagemaker.delete_hyper_parameter_tuning_job):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            call(**name)
    assert api.sagemaker.describe_training_job(TrainingJobName=first["TrainingJobName"])["TrainingJobStatus"] in ENDED
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    stop(api, request["HyperParameterTuningJobName"])


def test_a_tuning_job_has_at_most_as_many_training_jobs_at_once_as_on_aws(api, tuning):
    request = changed(tuning[0], f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs", 1_000_000)
    with pytest.raises(ClientError, match="ResourceLimitExceeded.*is 1,000,000, .* at most 100"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)


def test_stopping_a_tuning_job_stops_training_jobs_that_wait_for_others(tmp_path):
    with serving(tmp_path, "--s3", "memory", "--queue", "1") as api:
        other = api.start("import time; time.sleep(600)")
        request = tuning_request(api, "waiting", seconds="600")
        api.sagemaker.create_hyper_parameter_tuning_job(**request)
        name = {"HyperParameterTuningJobName": "waiting"}
        rows = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job
        until(lambda: len(rows(**name)["TrainingJobSummaries"]) == 2)
        found, jobs = stop(api, "waiting")
        assert found["HyperParameterTuningJobStatus"] == "Stopped"
        assert found["TrainingJobStatusCounters"] == {**NO_JOBS, "Stopped": 2}
        assert ["TrainingStartTime" in job for job in jobs] == [False, False]
        assert api.sagemaker.describe_training_job(TrainingJobName=other)["TrainingJobStatus"] == "InProgress"
