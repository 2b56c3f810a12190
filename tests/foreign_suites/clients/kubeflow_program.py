"""Run a request by a component of Kubeflow Pipelines."""

import contextlib
import io
import json
import logging
import sys
from pathlib import Path

from common.sagemaker_component import SageMakerComponent
from hyperparameter_tuning.src.sagemaker_tuning_component import SageMakerTuningComponent, SageMakerTuningSpec
from train.src.sagemaker_training_component import SageMakerTrainingComponent, SageMakerTrainingSpec

SageMakerComponent.STATUS_POLL_INTERVAL = 1
request = json.loads(Path(sys.argv[1]).read_text())
definition = request.get("TrainingJobDefinition", request)
algorithm = definition["AlgorithmSpecification"]
outputs = Path(sys.argv[1]).parent / "outputs"
arguments = {
    "region": "us-east-1",
    "role": definition["RoleArn"],
    "image": algorithm["TrainingImage"],
    "metric_definitions": json.dumps({each["Name"]: each["Regex"] for each in algorithm["MetricDefinitions"]}),
    "channels": json.dumps(definition["InputDataConfig"]),
    "instance_type": definition["ResourceConfig"]["InstanceType"],
    "instance_count": 1,
    "volume_size": definition["ResourceConfig"]["VolumeSizeInGB"],
    "max_run_time": definition["StoppingCondition"]["MaxRuntimeInSeconds"],
    "network_isolation": "False",
    "model_artifact_url_output_path": outputs / "model_artifact_url",
}
if definition is request:
    component, spec = SageMakerTrainingComponent(), SageMakerTrainingSpec
    arguments |= {
        "job_name": request["TrainingJobName"],
        "hyperparameters": json.dumps(request["HyperParameters"]),
        "model_artifact_path": request["OutputDataConfig"]["S3OutputPath"],
    }
else:
    component, spec = SageMakerTuningComponent(), SageMakerTuningSpec
    config = request["HyperParameterTuningJobConfig"]
    arguments |= {
        "job_name": request["HyperParameterTuningJobName"],
        "strategy": config["Strategy"],
        "metric_name": config["HyperParameterTuningJobObjective"]["MetricName"],
        "metric_type": config["HyperParameterTuningJobObjective"]["Type"],
        "static_parameters": json.dumps(definition["StaticHyperParameters"]),
        "categorical_parameters": json.dumps(config["ParameterRanges"]["CategoricalParameterRanges"]),
        "max_num_jobs": config["ResourceLimits"]["MaxNumberOfTrainingJobs"],
        "max_parallel_jobs": config["ResourceLimits"]["MaxParallelTrainingJobs"],
        "output_location": definition["OutputDataConfig"]["S3OutputPath"],
        "best_hyperparameters_output_path": outputs / "best_hyperparameters",
    }
log = io.StringIO()
logging.getLogger().addHandler(logging.StreamHandler(log))
with contextlib.suppress(SystemExit):
    component.Do(spec([text for name, value in arguments.items() for text in (f"--{name}", str(value))]))
found = {path.name: path.read_text() for path in outputs.iterdir()} if outputs.exists() else {}
outcome = {"artifacts": found.get("model_artifact_url"), "failure": "" if found else log.getvalue()}
if definition is request:
    outcome["log"] = log.getvalue()
elif found:
    outcome["best"] = json.loads(found["best_hyperparameters"])
print("OUTCOME", json.dumps(outcome))
