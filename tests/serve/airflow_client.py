"""A task of Apache Airflow that trains. Run with an endpoint in AWS_ENDPOINT_URL, and the request in a file."""

import json
import sys
from pathlib import Path

from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from airflow.providers.amazon.aws.sensors.sagemaker import SageMakerTrainingSensor

request = json.loads(Path(sys.argv[1]).read_text())
# Without a connection of Airflow, boto3's own settings count.
common = {"aws_conn_id": None, "region_name": "us-east-1"}
train = SageMakerTrainingOperator(
    task_id="train", config=request, wait_for_completion=True, print_log=True, check_interval=1, **common
)
found = train.execute({})["Training"]
wait = SageMakerTrainingSensor(task_id="wait", job_name=found["TrainingJobName"], print_log=False, **common)
print("FOUND", json.dumps([found["TrainingJobStatus"], found["ResourceConfig"]["InstanceType"], wait.poke({})]))
