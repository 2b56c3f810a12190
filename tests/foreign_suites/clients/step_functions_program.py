"""Run a request as a state machine around a step of the SDK; ``--sync``: by the step alone, which waits."""

import json
import sys
import time
from pathlib import Path

from sagemaker import Session
from sagemaker.inputs import TrainingInput
from sagemaker.tensorflow import TensorFlow
from stepfunctions.steps import FrozenGraph, TrainingStep
from stepfunctions.workflow import Workflow

request = json.loads(Path(sys.argv[1]).read_text())
name, parameters = request["TrainingJobName"], dict(request["HyperParameters"])
estimator = TensorFlow(
    entry_point=parameters.pop("sagemaker_program"),
    source_dir=parameters.pop("sagemaker_submit_directory"),
    role=request["RoleArn"],
    instance_count=1,
    instance_type=request["ResourceConfig"]["InstanceType"],
    image_uri=request["AlgorithmSpecification"]["TrainingImage"],
    metric_definitions=request["AlgorithmSpecification"]["MetricDefinitions"],
    output_path=request["OutputDataConfig"]["S3OutputPath"],
    hyperparameters={key: json.loads(value) for key, value in parameters.items()},
    sagemaker_session=Session(default_bucket="clients"),
)
channel = request["InputDataConfig"][0]
data = {channel["ChannelName"]: TrainingInput(channel["DataSource"]["S3DataSource"]["S3Uri"])}
waits = "--sync" in sys.argv
train = TrainingStep("Train", estimator, job_name=name, data=data, wait_for_completion=waits).to_dict()


def look(output, path, following):
    """Return a task that reads a value of the job's description; moto cannot render the whole, for its times."""
    resource = "arn:aws:states:::aws-sdk:sagemaker:describeTrainingJob"
    selected = {"Parameters": {"TrainingJobName": name}, "ResultSelector": {f"{output}.$": path}}
    return {"Type": "Task", "Resource": resource, **selected, "Next": following}


def choose(status, following):
    return {"Variable": "$.Status", "StringEquals": status, "Next": following}


states = {
    "Train": {"Type": "Task", "Resource": train["Resource"], "Parameters": train["Parameters"], "Next": "Wait"},
    "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Look"},
    "Look": look("Status", "$.TrainingJobStatus", "Ended?"),
    "Ended?": {
        "Type": "Choice",
        "Choices": [choose("InProgress", "Wait"), choose("Completed", "Artifacts")],
        "Default": "Reason",
    },
    "Artifacts": look("artifacts", "$.ModelArtifacts.S3ModelArtifacts", "Succeeded"),
    "Succeeded": {"Type": "Succeed"},
    "Reason": look("Reason", "$.FailureReason", "Failed"),
    "Failed": {"Type": "Fail", "Error": "TrainingFailed", "CausePath": "$.Reason"},
}
definition = {"StartAt": "Train", "States": {"Train": train} if waits else states}
machine = Workflow(name, FrozenGraph.from_json(json.dumps(definition)), request["RoleArn"])
machine.create()
execution = machine.execute()
deadline = time.monotonic() + 120
while (found := execution.describe())["status"] == "RUNNING" and time.monotonic() < deadline:
    time.sleep(0.5)
if found["status"] == "SUCCEEDED":
    outcome = json.loads(found["output"])
else:
    outcome = {"failure": f"{found['status']}: {found.get('error')}: {found.get('cause')}"}
print("OUTCOME", json.dumps(outcome))
