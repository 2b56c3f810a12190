"""Clients that others wrote train through `scriptmode serve` by their environment alone, and state machines of moto."""

import json
import sys
from pathlib import Path

import pytest
from fakes.local_jobs import channel
from fakes.processes import until
from references import environment
from serve.test_serve_tuning import tuning_request

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def tuning_request_with_a_channel(served):
    """Return the request of a tuning job which Airflow asks for."""
    s3 = served.client("s3")
    s3.create_bucket(Bucket="airflow")
    s3.put_object(Bucket="airflow", Key="in/data", Body=b"1")
    request = tuning_request(served, "tuned-by-airflow")
    definition = request["TrainingJobDefinition"]
    definition["ResourceConfig"] = definition.pop("HyperParameterTuningResourceConfig")
    definition["InputDataConfig"] = [channel("train", "s3://airflow/in")]
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 3
    return request


#: The values of a metric by statistics, data and list, as programs of boto3 ask for them.
READS = """
import json, sys, boto3
from datetime import datetime, timedelta
cloudwatch = boto3.client("cloudwatch")
metric = {"Namespace": "/aws/sagemaker/TrainingJobs", "MetricName": "loss"}
metric["Dimensions"] = [{"Name": "TrainingJobName", "Value": sys.argv[1]}]
span = {"StartTime": datetime.utcnow() - timedelta(hours=1), "EndTime": datetime.utcnow() + timedelta(hours=1)}
answer = cloudwatch.get_metric_statistics(**metric, **span, Period=86400, Statistics=["Average"])
query = {"Id": "a", "MetricStat": {"Metric": metric, "Period": 86400, "Stat": "Sum"}}
results = cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
content_type = answer["ResponseMetadata"]["HTTPHeaders"]["content-type"]
averages = [each["Average"] for each in answer["Datapoints"]]
print(json.dumps([content_type, averages, results[0]["Values"]]))
"""


def measured(served):
    """Return the name of a job that printed two values of a metric."""
    request = served.request("print('loss=0.5'); print('loss=1')")
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    served.sagemaker.create_training_job(**request)
    assert served.wait(request["TrainingJobName"])["TrainingJobStatus"] == "Completed"
    return request["TrainingJobName"]


def test_metrics_are_read_by_the_aws_command(served):
    metric = ("--namespace", "/aws/sagemaker/TrainingJobs", "--metric-name", "loss")
    job = ("--dimensions", f"Name=TrainingJobName,Value={measured(served)}")
    span = ("--start-time", "2026-01-01T00:00:00Z", "--end-time", "2099-01-01T00:00:00Z", "--period", str(86400 * 365))
    aws = (environment("awscli") / "aws", "cloudwatch")
    found = served.execute(
        *aws, "get-metric-statistics", *metric, *job, *span, "--statistics", "Sum", "--output", "json"
    )
    assert [each["Sum"] for each in json.loads(found)["Datapoints"]] == [1.5]


@pytest.mark.parametrize(
    ("python", "content_type"),
    [
        (lambda: sys.executable, "application/x-amz-json-1.0"),
        (lambda: environment("boto3==1.34.0") / "python", "text/xml"),
    ],
    ids=["boto3", "an older boto3"],
)
def test_metrics_are_read_by_boto3(served, python, content_type):
    found = json.loads(served.execute(python(), "-W", "ignore", "-c", READS, measured(served)).splitlines()[-1])
    assert found == [content_type, [0.75], [1.5]]


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_the_operators_of_airflow_train_follow_the_log_and_tune_and_the_sensors_see_the_end(served, tmp_path):
    request = {**served.request("print('from airflow')"), "TrainingJobName": "by-airflow"}
    files = {tmp_path / "job.json": request, tmp_path / "tuning.json": tuning_request_with_a_channel(served)}
    for path, content in files.items():
        path.write_text(json.dumps(content))
    python = environment("apache-airflow-providers-amazon") / "python"
    out = served.execute(python, HERE / "airflow_client.py", *files, AIRFLOW_HOME=str(tmp_path / "airflow"))
    assert json.loads(out.partition("FOUND ")[2].splitlines()[0]) == ["Completed", "ml.m5.xlarge", True]
    assert out.count("] from airflow ") == 1
    assert json.loads(out.partition("TUNED ")[2].splitlines()[0]) == ["Completed", {"rate": "0.5"}, True]


def definition(request):
    """Return a state machine that creates a training job and looks at it until it has ended."""
    name = {"TrainingJobName": request["TrainingJobName"]}
    sdk = "arn:aws:states:::aws-sdk:sagemaker"
    choices = [
        {"Variable": "$.Status", "StringEquals": status, "Next": state}
        for status, state in (("InProgress", "Wait"), ("Completed", "Succeeded"))
    ]
    states = {
        "Train": {"Type": "Task", "Resource": f"{sdk}:createTrainingJob", "Parameters": request, "Next": "Wait"},
        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Look"},
        "Look": {
            "Type": "Task",
            "Resource": f"{sdk}:describeTrainingJob",
            "Parameters": name,
            # moto cannot render the times of a description.
            "ResultSelector": {"Status.$": "$.TrainingJobStatus", "Reason.$": "$.SecondaryStatus"},
            "Next": "Ended?",
        },
        "Ended?": {"Type": "Choice", "Choices": choices, "Default": "Failed"},
        "Succeeded": {"Type": "Succeed"},
        "Failed": {"Type": "Fail"},
    }
    return json.dumps({"StartAt": "Train", "States": states})


def test_a_state_machine_trains_and_waits(api):
    request = api.request("print(1)")
    states = api.client("stepfunctions")
    machine = states.create_state_machine(
        name=request["TrainingJobName"], definition=definition(request), roleArn="arn:aws:iam::000000000000:role/states"
    )["stateMachineArn"]
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    def ended():
        found = states.describe_execution(executionArn=execution)
        return found["status"] != "RUNNING" and found

    assert until(ended)["status"] == "SUCCEEDED"
    assert api.wait(request["TrainingJobName"])["TrainingJobStatus"] == "Completed"
