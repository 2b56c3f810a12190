"""Tuning jobs of the SageMaker Python SDK v2, unmodified. Run with an endpoint in AWS_ENDPOINT_URL."""

import json
import sys
import time
from pathlib import Path

import boto3
import sagemaker
from sagemaker.tensorflow import TensorFlow
from sagemaker.tuner import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)

SCRIPT = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--penalty", type=float)
given = parser.parse_known_args()[0]
print("accuracy=%f" % (1 - abs(given.lr - 0.25) - given.penalty))
open(os.environ["SM_MODEL_DIR"] + "/weights", "w").write(str(given.lr))
"""
METRICS = [{"Name": "accuracy", "Regex": "accuracy=([0-9.-]+)"}]
RANGES = {"lr": ContinuousParameter(0.1, 1.0), "units": IntegerParameter(1, 4)}


def number(value):
    """Return a number; that of a categorical parameter is in quotes."""
    return float(str(value).strip('"'))


def found(tuner, session):
    """Return what v2 finds out about an ended tuning job, itself and after an attach."""
    table = tuner.analytics().dataframe()
    attached = HyperparameterTuner.attach(tuner.latest_tuning_job.name, sagemaker_session=session)
    best = attached.best_estimator()
    row = table[table["TrainingJobName"] == attached.best_training_job()].iloc[0]
    return {
        "status": tuner.describe()["HyperParameterTuningJobStatus"],
        "is the best": row["FinalObjectiveValue"] == max(table["FinalObjectiveValue"]),
        "attached": attached.best_training_job() == tuner.best_training_job() == best.latest_training_job.name,
        "the best one's lr": abs(number(best.hyperparameters()["lr"]) - number(row["lr"])) < 1e-9,
        "rows": len(table),
    }


sleep = time.sleep
#: v2 looks every 5 to 30 s; the server is on this machine.
time.sleep = lambda seconds: sleep(min(seconds, 1))


def main(folder):
    (folder / "train.py").write_text(SCRIPT)
    session = sagemaker.Session(boto3.Session(region_name="us-east-1"), default_bucket="v2-tuners")

    def estimator(penalty, instance_type="ml.m5.xlarge"):
        return TensorFlow(
            entry_point="train.py", source_dir=str(folder), role="arn:aws:iam::000000000000:role/test",
            instance_count=1, instance_type=instance_type, framework_version="2.14", py_version="py310",
            hyperparameters={"penalty": penalty}, sagemaker_session=session,
        )  # fmt: skip

    jobs = {"max_jobs": 2, "max_parallel_jobs": 2}
    one = HyperparameterTuner(estimator(0), "accuracy", RANGES, METRICS, **jobs)
    one.fit()
    config = StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1))
    hyperband = HyperparameterTuner(
        estimator(0), "accuracy", {"lr": CategoricalParameter([0.5, 0.25])}, METRICS, strategy="Hyperband",
        strategy_config=config, **jobs,
    )  # fmt: skip
    hyperband.fit(wait=False, job_name="v2-hyperband")
    hyperband.wait()
    stopped = HyperparameterTuner(estimator(0), "accuracy", RANGES, METRICS, base_tuning_job_name="stopped", **jobs)
    stopped.fit(wait=False)
    stopped.stop_tuning_job()
    stopped.wait()
    content = {
        "one": found(one, session),
        "hyperband": found(hyperband, session),
        "stopped": stopped.describe()["HyperParameterTuningJobStatus"],
    }
    print("FOUND " + json.dumps(content, default=bool))


main(Path(sys.argv[1]))
