"""Tasks of Apache Airflow that train and tune. Run with an endpoint in AWS_ENDPOINT_URL, and the requests in files."""

import json
import sys
from pathlib import Path

from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator, SageMakerTuningOperator
from airflow.providers.amazon.aws.sensors.sagemaker import SageMakerTrainingSensor, SageMakerTuningSensor

request, tuning_request = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
# Without a connection of Airflow, boto3's own settings count.
common = {"aws_conn_id": None, "region_name": "us-east-1"}
train = SageMakerTrainingOperator(
    task_id="train", config=request, wait_for_completion=True, print_log=True, check_interval=1, **common
)
found = train.execute({})["Training"]
wait = SageMakerTrainingSensor(task_id="wait", job_name=found["TrainingJobName"], print_log=False, **common)
print("FOUND", json.dumps([found["TrainingJobStatus"], found["ResourceConfig"]["InstanceType"], wait.poke({})]))
tune = SageMakerTuningOperator(
    task_id="tune", config=tuning_request, wait_for_completion=True, check_interval=1, **common
)
found = tune.execute({})["Tuning"]
wait = SageMakerTuningSensor(task_id="wait", job_name=found["HyperParameterTuningJobName"], **common)
best = found["BestTrainingJob"]["TunedHyperParameters"]
print("TUNED", json.dumps([found["HyperParameterTuningJobStatus"], best, wait.poke({})]))
