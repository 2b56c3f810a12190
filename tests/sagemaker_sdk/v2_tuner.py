"""Tuning jobs of the SageMaker Python SDK v2, unmodified. Run with an endpoint in AWS_ENDPOINT_URL."""

import json
import sys
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
        "definitions": sorted(table.get("TrainingJobDefinitionName", [])),
    }


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
    several = HyperparameterTuner.create(
        {"good": estimator(0), "bad": estimator(5, "ml.p3.2xlarge")}, dict.fromkeys(("good", "bad"), "accuracy"),
        dict.fromkeys(("good", "bad"), RANGES), dict.fromkeys(("good", "bad"), METRICS),
        base_tuning_job_name="several", **jobs,
    )  # fmt: skip
    several.fit(include_cls_metadata={})
    best = several.describe()["BestTrainingJob"]
    again = one.identical_dataset_and_algorithm_tuner()
    # v2 leaves them out.
    again.metric_definitions = METRICS
    again.fit(job_name="v2-again")
    other = one.transfer_learning_tuner(additional_parents={again.latest_tuning_job.name}, estimator=estimator(1))
    other.metric_definitions = METRICS
    other.fit(job_name="v2-other")
    strategies = {
        "Random": HyperparameterTuner(estimator(0), "accuracy", RANGES, METRICS, strategy="Random", **jobs),
        "Grid": HyperparameterTuner(
            estimator(0), "accuracy", {"lr": CategoricalParameter([0.5, 0.25])}, METRICS, strategy="Grid",
            **jobs,
        ),
        "Hyperband": HyperparameterTuner(
            estimator(0), "accuracy", RANGES, METRICS, strategy="Hyperband",
            strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1)), **jobs,
        ),
    }  # fmt: skip
    for name, tuner in strategies.items():
        tuner.fit(wait=False, job_name=f"v2-{name}")
    for tuner in strategies.values():
        tuner.wait()
    overall = again.describe()["OverallBestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    objectives = [each.analytics().dataframe()["FinalObjectiveValue"].max() for each in (one, again)]
    stopped = HyperparameterTuner(estimator(0), "accuracy", RANGES, METRICS, base_tuning_job_name="stopped", **jobs)
    stopped.fit(wait=False)
    stopped.stop_tuning_job()
    stopped.wait()
    content = {
        "one": found(one, session),
        "several": found(several, session),
        "best definition": best["TrainingJobDefinitionName"],
        "again": [again.describe()["WarmStartConfig"]["WarmStartType"], abs(overall - max(objectives)) < 1e-9],
        "other": [other.describe()["HyperParameterTuningJobStatus"], "OverallBestTrainingJob" in other.describe()],
        "strategies": {name: found(tuner, session) for name, tuner in strategies.items()},
        "stopped": stopped.describe()["HyperParameterTuningJobStatus"],
    }
    print("FOUND " + json.dumps(content, default=bool))


main(Path(sys.argv[1]))
