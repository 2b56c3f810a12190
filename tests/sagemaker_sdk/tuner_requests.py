"""The tuning jobs that v2 and scriptmode request for the same constructions; run in v2's environment, prints JSON."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from types import SimpleNamespace
from typing import Any

CASES = {
    "categories": "{'lr': ContinuousParameter(0.001, 0.1), 'flag': CategoricalParameter([True, False]),"
    " 'units': CategoricalParameter([16, 32]), 'rate': CategoricalParameter([0.5, 'a']), 'n': IntegerParameter(1, 4)}",
    "a warm start": "RANGES, warm_start_config=WarmStartConfig(WarmStartTypes.TRANSFER_LEARNING, {'one', 'two'})",
    "identical data": "RANGES, warm_start_config=WarmStartConfig(warm_start_type=WarmStartTypes."
    "IDENTICAL_DATA_AND_ALGORITHM, parents={'one'})",
    "criteria": "RANGES, completion_criteria_config=TuningJobCompletionCriteriaConfig("
    "max_number_of_training_jobs_not_improving=5, complete_on_convergence=True, target_objective_metric_value=0.9)",
    "no convergence": "RANGES, completion_criteria_config=TuningJobCompletionCriteriaConfig("
    "complete_on_convergence=False)",
    "hyperband": "RANGES, strategy='Hyperband', strategy_config=StrategyConfig(HyperbandStrategyConfig("
    "max_resource=9, min_resource=1))",
    "autotune": "RANGES, autotune=True, hyperparameters_to_keep_static=KEPT",
    "autotune without ranges": "None, autotune=True, hyperparameters_to_keep_static=KEPT",
    "limits": "RANGES, max_jobs=20, max_parallel_jobs=3, max_runtime_in_seconds=3600, random_seed=3,"
    " early_stopping_type='Auto', objective_type='Minimize', tags=[{'Key': 'a', 'Value': 'b'}]",
    "a named estimator": "RANGES, estimator_name='only'",
}
#: How hosts are chosen, by what follows the constructor.
HOSTS = {
    "other hosts": "[InstanceConfig(2, 'ml.m5.large'), InstanceConfig(instance_count=1, instance_type='ml.c5.xlarge',"
    " volume_size=50)]",
    "no other hosts": "None",
}
SEVERAL = (
    "HyperparameterTuner.create({'b': estimator(), 'a': estimator()}, {'a': 'accuracy', 'b': 'loss'},"
    " {'a': RANGES, 'b': {'n': IntegerParameter(1, 4)}}, metric_definitions_dict={'b': LOSS, 'a': METRICS},"
    " objective_type='Minimize', max_jobs=4, strategy='Random', tags=[{'Key': 'a', 'Value': 'b'}])"
)
METRICS = [{"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"}]
LOSS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]


def main() -> None:
    import boto3
    import sagemaker
    import sagemaker.tensorflow
    import sagemaker.tuner

    import scriptmode
    from scriptmode.testing import FakeSageMaker

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sent: list[dict[str, Any]] = []
    client = SimpleNamespace(create_hyper_parameter_tuning_job=lambda **request: sent.append(request))
    session = sagemaker.Session(
        boto3.session.Session("key", "secret", region_name="us-east-1"), client, default_bucket="bucket"
    )
    session.upload_data = lambda *_, **__: "s3://bucket/x"
    session._append_sagemaker_config_tags = lambda tags, _: tags
    arguments = {
        "entry_point": "train.py", "role": "arn:aws:iam::123456789012:role/r", "instance_type": "ml.m5.xlarge",
        "instance_count": 1, "image_uri": "img:1", "volume_kms_key": "key", "hyperparameters": {"epochs": 3, "seed": 1},
        "framework_version": "2.13", "py_version": "py310", "output_path": "s3://bucket/out",
    }  # fmt: skip
    theirs = dict(arguments, source_dir="s3://bucket/code.tar.gz", sagemaker_session=session)
    ours = dict(theirs, sagemaker_session=FakeSageMaker())

    def names(modules: list[Any], kind: Any, given: dict[str, Any]) -> dict[str, Any]:
        found = {name: value for module in modules for name, value in vars(module).items()}
        return {**found, "estimator": lambda: kind(**given), "METRICS": METRICS, "LOSS": LOSS}

    v2 = names([sagemaker.parameter, sagemaker.tuner], sagemaker.tensorflow.TensorFlow, theirs)
    own = {name: getattr(scriptmode, name) for name in scriptmode.__all__}
    here = {**names([], scriptmode.TensorFlow, ours), **own}
    found: dict[str, Any] = {"v2": {}, "ours": {}}
    programs = {name: (f"HyperparameterTuner(estimator(), 'accuracy', {text}, metric_definitions=METRICS)", None)
                for name, text in CASES.items()}  # fmt: skip
    plain = "HyperparameterTuner(estimator(), 'accuracy', RANGES, metric_definitions=METRICS)"
    programs |= {name: (plain, hosts) for name, hosts in HOSTS.items()}
    programs["several"] = (SEVERAL, None)
    programs["several with hosts"] = (SEVERAL, "{'b': [InstanceConfig(2, 'ml.m5.large')]}")
    ranges = "{'lr': ContinuousParameter(0.001, 0.1, 'Logarithmic'), 'epochs': IntegerParameter(1, 9)}"
    for label, space in (("v2", v2), ("ours", here)):
        space["RANGES"] = eval(ranges, space)
        for name, (program, hosts) in programs.items():
            # v2 takes all hyperparameters of script mode for the search unless they are kept.
            kept = [each for each in space["estimator"]().hyperparameters() if each.startswith(("sagemaker", "model"))]
            space["KEPT"] = [*kept, "seed"] if label == "v2" else ["seed"]
            tuner = eval(program, space)
            if hosts:
                tuner.override_resource_config(eval(hosts, space))
            if label == "ours":
                found["ours"][name] = tuner.request(job_name="search")
                continue
            tuner._prepare_for_tuning(job_name="search")
            sagemaker.tuner._TuningJob.start_new(tuner, None)
            found["v2"][name] = sent.pop()
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
