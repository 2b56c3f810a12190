"""A state machine of AWS Step Functions trains through `scriptmode serve`, where moto interprets it."""

import json

import pytest
from fakes.processes import until

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(("script", "ends"), [("print(1)", "SUCCEEDED"), ("raise SystemExit(3)", "FAILED")])
def test_a_state_machine_trains_and_waits(api, script, ends):
    request = api.request(script)
    states = api.client("stepfunctions")
    machine = states.create_state_machine(
        name=request["TrainingJobName"],
        definition=definition(request),
        roleArn="arn:aws:iam::000000000000:role/states",
    )["stateMachineArn"]
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    def ended():
        found = states.describe_execution(executionArn=execution)
        return found["status"] != "RUNNING" and found

    assert until(ended, 120)["status"] == ends
    found = api.wait(request["TrainingJobName"])
    assert found["TrainingJobStatus"] == {"SUCCEEDED": "Completed", "FAILED": "Failed"}[ends]
