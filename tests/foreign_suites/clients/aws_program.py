"""Run a request by the AWS CLI v2, the second argument."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

path, aws = sys.argv[1:]
name = json.loads(Path(path).read_text())["TrainingJobName"]


def run(*arguments):
    # Versions before 2.13 do not read AWS_ENDPOINT_URL.
    command = (aws, *arguments, "--endpoint-url", os.environ["AWS_ENDPOINT_URL"], "--output", "json")
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def describe():
    return json.loads(run("sagemaker", "describe-training-job", "--training-job-name", name))


run("sagemaker", "create-training-job", "--cli-input-json", f"file://{path}")
# The waiter looks every two minutes.
while describe()["TrainingJobStatus"] == "InProgress":
    time.sleep(1)
found = describe()
group = ("/aws/sagemaker/TrainingJobs", "--log-stream-name-prefix", f"{name}/", "--since", "1h")
outcome = {"log": run("logs", "tail", *group, "--format", "short"), "failure": found.get("FailureReason")}
if not outcome["failure"]:
    run("sagemaker", "wait", "training-job-completed-or-stopped", "--training-job-name", name)
    outcome["artifacts"] = found["ModelArtifacts"]["S3ModelArtifacts"]
print("OUTCOME", json.dumps(outcome))
