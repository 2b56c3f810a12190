"""Run a request as a workflow of Flyte on this machine: ``flyte_program.py REQUEST.json``."""

import json
import sys
from pathlib import Path

from flytekit import workflow
from flytekitplugins.awssagemaker_hyperparameter_tuning import SageMakerHyperParameterTuningJobTask
from flytekitplugins.awssagemaker_training import SageMakerTrainingJobTask

request = json.loads(Path(sys.argv[1]).read_text())
kind = SageMakerTrainingJobTask if "TrainingJobName" in request else SageMakerHyperParameterTuningJobTask
train = kind(name="train", config=request, region="us-east-1")


@workflow
def pipeline() -> dict:
    return train()


try:
    result = pipeline()
    best = result.get("BestTrainingJob", {}).get("TunedHyperParameters")
    outcome = {"artifacts": result["ModelArtifacts"]["S3ModelArtifacts"], "best": best}
except Exception as error:
    outcome = {"failure": str(error)}
print("OUTCOME", json.dumps(outcome))
