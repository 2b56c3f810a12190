"""Arguments and requests of a `Tuner`."""

import re
import warnings
from types import SimpleNamespace

import pytest
from fakes.output_shapes import against, operation
from fakes.sagemaker_jobs import ROLE, sagemaker_estimator

from scriptmode import (
    CategoricalParameter,
    ContinuousParameter,
    Estimator,
    HyperparameterTuner,
    InstanceConfig,
    IntegerParameter,
    RequestError,
    SpecError,
    TensorFlow,
    Tuner,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
    WarmStartTypes,
)
from scriptmode._core.request import tuning
from scriptmode.testing import FakeSageMaker

pytestmark = pytest.mark.usefixtures("no_settings")

ACCURACY = [{"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"}]
RANGES = {"lr": ContinuousParameter(1e-4, 1e-1), "layers": IntegerParameter(1, 4)}


def estimator(code, kind=Estimator, **arguments):
    defaults = {"metric_definitions": ACCURACY, "sagemaker_session": FakeSageMaker()}
    return sagemaker_estimator(code, kind=kind, **{**defaults, **arguments})


@pytest.mark.parametrize("kind", [Tuner, HyperparameterTuner])
def test_a_request_has_the_search_and_the_training_jobs(code, kind):
    fake = FakeSageMaker()
    given = {"hyperparameters": {"epochs": 3}, "tags": {"team": "a", "stage": "b"}, "sagemaker_session": fake}
    tuner = kind(
        estimator(code, max_run=600, **given),
        "accuracy",
        {**RANGES, "optimizer": CategoricalParameter(["adam", "sgd"])},
        max_jobs=8,
        max_parallel_jobs=2,
        early_stopping_type="Auto",
        random_seed=7,
        max_runtime_in_seconds=3600,
        tags={"stage": "c"},
    )
    request = tuner.request("s3://data/train", job_name="search")
    assert against(operation("CreateHyperParameterTuningJob").input_shape, request) == ""
    assert request["HyperParameterTuningJobName"] == "search"
    assert request["HyperParameterTuningJobConfig"] == {
        "Strategy": "Bayesian",
        "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "accuracy"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2, "MaxRuntimeInSeconds": 3600},
        "ParameterRanges": {
            "ContinuousParameterRanges": [
                {"Name": "lr", "MinValue": "0.0001", "MaxValue": "0.1", "ScalingType": "Auto"}
            ],
            "IntegerParameterRanges": [{"Name": "layers", "MinValue": "1", "MaxValue": "4", "ScalingType": "Auto"}],
            "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ['"adam"', '"sgd"']}],
        },
        "TrainingJobEarlyStoppingType": "Auto",
        "RandomSeed": 7,
    }
    assert request["Tags"] == [{"Key": "team", "Value": "a"}, {"Key": "stage", "Value": "c"}]
    definition = request["TrainingJobDefinition"]
    assert definition["StaticHyperParameters"]["epochs"] == "3"
    assert definition["StaticHyperParameters"]["sagemaker_program"] == '"train.py"'
    assert definition["AlgorithmSpecification"]["MetricDefinitions"] == ACCURACY
    assert definition["StoppingCondition"] == {"MaxRuntimeInSeconds": 600}
    assert definition["InputDataConfig"][0]["ChannelName"] == "training"
    assert fake.calls == []
    assert tuner.stored_request("s3://data/train", job_name="search") == request
    assert "put_object" in [call.operation for call in fake.calls]


def test_names_of_tuning_jobs_fit_the_service_and_differ(code):
    made = estimator(code, TensorFlow, framework_version="2.15", py_version="py310")
    request = Tuner(made, "accuracy", RANGES).request()
    assert against(operation("CreateHyperParameterTuningJob").input_shape, request) == ""
    assert re.fullmatch(r"img-\d{6}-\d{6}", request["HyperParameterTuningJobName"])
    tuner = Tuner(made, "accuracy", RANGES, base_tuning_job_name="a-very-long-name-of-a-search")
    first, second = (tuner.request()["HyperParameterTuningJobName"] for _ in range(2))
    assert first != second
    assert len(first) == 32
    assert first.startswith("a-very-long-name-o-")


def test_a_built_in_algorithm_defines_its_own_metrics(code):
    made = Estimator("amazon/xgboost:1", ROLE, 1, "ml.m5.large", sagemaker_session=FakeSageMaker())
    request = Tuner(
        made, "validation:auc", {"eta": ContinuousParameter(0, 1), "how": CategoricalParameter(["a"])}
    ).request()
    ranges = request["HyperParameterTuningJobConfig"]["ParameterRanges"]
    assert ranges["CategoricalParameterRanges"] == [{"Name": "how", "Values": ["a"]}]
    assert "MetricDefinitions" not in request["TrainingJobDefinition"]["AlgorithmSpecification"]


def test_a_range_takes_precedence_over_a_fixed_hyperparameter_with_a_warning(code):
    tuner = Tuner(estimator(code, hyperparameters={"lr": 0.1, "epochs": 1}), "accuracy", RANGES)
    with pytest.warns(UserWarning, match=r"hyperparameters\['lr'\] is not used: hyperparameter_ranges has") as caught:
        request = tuner.request()
    assert [each.filename for each in caught] == [__file__]
    static = request["TrainingJobDefinition"]["StaticHyperParameters"]
    assert "lr" not in static
    assert static["epochs"] == "1"


def test_monitoring_is_left_out_with_a_warning(code):
    tuner = Tuner(estimator(code, profiler_config={"ProfilingIntervalInMilliseconds": 500}), "accuracy", RANGES)
    told = "profiler_config is not used: training jobs of a tuning job do not have it"
    with pytest.warns(UserWarning, match=told) as caught:
        request = tuner.request()
    assert [each.filename for each in caught] == [__file__]
    assert "ProfilerConfig" not in request["TrainingJobDefinition"]


def test_ranges_of_the_sagemaker_sdk_are_taken(code):
    number = type("ContinuousParameter", (), {"min_value": 0.1, "max_value": 0.2, "scaling_type": "Linear"})()
    choice = type("CategoricalParameter", (), {"values": ["adam", "sgd"]})()
    ranges = Tuner(estimator(code), "accuracy", {"lr": number, "optimizer": choice}).hyperparameter_ranges()
    assert ranges == {
        "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "0.2", "ScalingType": "Linear"}],
        "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ['"adam"', '"sgd"']}],
    }


def test_hyperband_takes_its_resources_also_as_the_class_of_the_sagemaker_sdk(code):
    resources = {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}}
    for given in (resources, SimpleNamespace(to_input_req=lambda: resources)):
        tuner = Tuner(estimator(code), "accuracy", RANGES, strategy="Hyperband", strategy_config=given)
        assert tuner.request()["HyperParameterTuningJobConfig"]["StrategyConfig"] == resources


WRONG = {
    "a tuple as range": ({"hyperparameter_ranges": {"lr": (0, 1)}}, "hyperparameter_ranges['lr'] is (0, 1); give an"),
    "a reserved name": ({"hyperparameter_ranges": {"sagemaker_program": CategoricalParameter("a")}}, "has the name 'sagemaker_program'"),
    "too many at once": ({"max_parallel_jobs": 3}, "max_parallel_jobs is 3, which is more than max_jobs, 2; give 1 to 2"),
    "a grid of numbers": ({"strategy": "Grid"}, "but strategy 'Grid' takes single values; give a CategoricalParameter"),
    "a part of a grid": (
        {"strategy": "Grid", "hyperparameter_ranges": {"a": CategoricalParameter([1, 2, 3])}},
        "max_jobs is 2, but the grid has 3 combinations; leave it out for all",
    ),
    "two rules": (
        {"strategy": "Hyperband", "early_stopping_type": "Auto"},
        "early_stopping_type is 'Auto', but strategy 'Hyperband' stops training jobs by its own rule; leave it out",
    ),
    "a config without its strategy": (
        {"strategy_config": {"HyperbandStrategyConfig": {"MaxResource": 3}}},
        "but strategy is 'Bayesian'; leave it out, or use 'Hyperband'",
    ),
    "turned resources": (
        {"strategy": "Hyperband", "strategy_config": {"HyperbandStrategyConfig": {"MinResource": 9, "MaxResource": 3}}},
        "give a MinResource that is less than MaxResource",
    ),
    "a config without its name": ({"strategy": "Hyperband", "strategy_config": {"MaxResource": 3}}, "give {"),
    "an estimator of another SDK": ({"estimator": object()}, "give a scriptmode.Estimator or scriptmode.TensorFlow"),
    "a warm start of another class": ({"warm_start_config": object()}, "give what scriptmode's function for"),
    "no name to keep": ({"hyperparameters_to_keep_static": ["a"]}, "is ['a'], but autotune is False; set autotune=True"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_are_refused(code, arguments, text):
    given = {
        "estimator": estimator(code), "objective_metric_name": "accuracy", "hyperparameter_ranges": RANGES,
        "max_jobs": 2,
    }  # fmt: skip
    with pytest.raises(SpecError, match=re.escape(text)):
        Tuner(**{**given, **arguments})


def test_an_objective_without_any_definition_is_refused_with_an_example(code):
    with pytest.raises(SpecError) as raised:
        Tuner(estimator(code, metric_definitions=None), "accuracy", RANGES)
    assert str(raised.value) == (
        "objective_metric_name is 'accuracy', which is not one of metric_definitions, []; say how the log shows it: "
        'metric_definitions=[{"Name": \'accuracy\', "Regex": "accuracy=([0-9.]+)"}]'
    )


def test_arguments_without_effect_are_accepted_and_unknown_ones_are_not(code):
    Tuner(estimator(code), "accuracy", RANGES, warm_start_config=None, autotune=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_job'"):
        Tuner(estimator(code), "accuracy", RANGES, max_job=3)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: IntegerParameter(4, 1), "min_value and max_value are 4 and 1; give two whole numbers, the lesser first"),
        (lambda: ContinuousParameter(0, float("inf")), "are 0 and inf; give two finite numbers"),
        (lambda: ContinuousParameter(0, 1, "Logarithmic"), "is 'Logarithmic' for values from 0 to 1; Auto and Linear"),
        (lambda: ContinuousParameter(0, 1, "ReverseLogarithmic"), "of at least 0 and less than 1"),
        (lambda: IntegerParameter(0, 1, "ReverseLogarithmic"), "ReverseLogarithmic is for a ContinuousParameter"),
        (lambda: CategoricalParameter([]), "values is empty; give one value or more"),
    ],
)  # fmt: skip
def test_wrong_ranges_are_refused(make, text):
    with pytest.raises(SpecError, match=re.escape(text)):
        make()


def test_a_categorical_parameter_takes_one_value_and_refuses_equal_ones(code):
    assert CategoricalParameter("adam").values == ("adam",)
    tuner = Tuner(estimator(code), "accuracy", {"a": CategoricalParameter([1, 2, 1])})
    with pytest.raises(SpecError, match=re.escape("hyperparameter_ranges['a'] has the value \"1\" twice; keep one")):
        tuner.request()


SEVERAL = {
    "an unknown name": ({"metric_definitions_dict": {"on": ACCURACY}}, "metric_definitions_dict is {'on': "),
    "a missing name": ({"objective_metric_name_dict": {"one": "accuracy"}}, "the names of the estimators: one, two"),
    "no dict": ({"objective_metric_name_dict": "accuracy"}, "is 'accuracy'; give a dict by the names of the estim"),
}


@pytest.mark.parametrize(("arguments", "text"), SEVERAL.values(), ids=SEVERAL.keys())
def test_dicts_of_several_estimators_have_the_same_names(code, arguments, text):
    given = {
        "estimator_dict": dict.fromkeys(("one", "two"), estimator(code)),
        "objective_metric_name_dict": dict.fromkeys(("one", "two"), "accuracy"),
        "hyperparameter_ranges_dict": dict.fromkeys(("one", "two"), RANGES),
    }
    with pytest.raises(SpecError, match=re.escape(text)):
        HyperparameterTuner.create(**{**given, **arguments})
    made = HyperparameterTuner.create(**given)
    with pytest.raises(SpecError, match="give a dict by the names of the estimators: one, two"):
        made.request({"on": "s3://data/x"})
    assert (made.estimator, list(made.estimator_dict)) == (None, ["one", "two"])


def test_hyperparameters_of_script_mode_are_never_chosen_by_the_service(code):
    made = estimator(code, TensorFlow, framework_version="2.13", hyperparameters={"epochs": 3, "seed": 1})
    tuner = Tuner(made, "accuracy", {}, autotune=True, hyperparameters_to_keep_static=["seed"])
    request = tuner.request()
    assert request["Autotune"] == {"Mode": "Enabled"}
    ranges = request["HyperParameterTuningJobConfig"]["ParameterRanges"]
    assert ranges == {"AutoParameters": [{"Name": "epochs", "ValueHint": "3"}]}
    static = request["TrainingJobDefinition"]["StaticHyperParameters"]
    assert {"seed", "sagemaker_program", "model_dir"} <= static.keys()
    tuner = Tuner(made, "accuracy", {}, autotune=True, hyperparameters_to_keep_static=["sed"])
    with pytest.raises(SpecError, match="hyperparameters_to_keep_static has 'sed', which is not"):
        tuner.request()


def test_wrong_values_are_reported_with_the_services_limits(code):
    criteria = TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=1)
    tuner = Tuner(estimator(code), "accuracy", RANGES, completion_criteria_config=criteria)
    with pytest.raises(RequestError, match=r"MaxNumberOfTrainingJobsNotImproving is 1; the least is 3"):
        tuner.request()
    tuner = Tuner(estimator(code), "accuracy", RANGES)
    tuner.override_resource_config([InstanceConfig(instance_type="ml.m5.large")])
    with pytest.raises(RequestError, match=r"InstanceConfigs\[0\]\.InstanceCount is None"):
        tuner.request()
    for wrong in ("ml.m5.large", [], [1]):
        with pytest.raises(SpecError, match="give "):
            tuner.override_resource_config(wrong)
    with pytest.raises(SpecError, match="give a set of the names of tuning jobs"):
        WarmStartConfig(WarmStartTypes.TRANSFER_LEARNING, "a")


def test_what_a_tuning_job_cannot_run_is_refused(code):
    tuner = Tuner(estimator(code, container_entry_point=["sh"]), "accuracy", RANGES)
    with pytest.raises(SpecError, match="container_entry_point is given, but training jobs of a tuning job do not"):
        tuner.request()


def test_a_long_name_is_refused_with_a_shorter_one(code):
    with pytest.raises(SpecError, match="has 33 characters; names of tuning jobs have at most 32: write 'aaa"):
        Tuner(estimator(code), "accuracy", RANGES).request(job_name="a" * 33)


def test_nothing_can_be_asked_before_fit(code):
    tuner = Tuner(estimator(code), "accuracy", RANGES)
    for method in (tuner.describe, tuner.analytics, tuner.best_training_job, tuner.wait, tuner.stop_tuning_job):
        with pytest.raises(SpecError, match=re.escape("call fit() or Tuner.attach(name) first")):
            method()


def test_the_error_for_sagemakers_own_tuner_names_ours(code):
    with pytest.raises(SpecError, match=re.escape("use scriptmode.HyperparameterTuner, which has the same arguments")):
        # The first call of sagemaker.tuner.HyperparameterTuner.fit.
        estimator(code)._prepare_for_training(None)


def test_the_request_of_a_training_job_is_the_one_that_the_service_makes(code):
    made = estimator(code, hyperparameters={"epochs": 3}, checkpoint_s3_uri="s3://b/c/", tags={"team": "a"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        request = Tuner(made, "accuracy", RANGES).request(job_name="search")
    job = tuning.training_request(request, "search-001-abc", {"lr": "0.01", "layers": "2"})
    assert job["TrainingJobName"] == "search-001-abc"
    assert job["CheckpointConfig"]["S3Uri"] == "s3://b/c/search-001-abc"
    assert job["Tags"] == [{"Key": "team", "Value": "a"}]
    parameters = job["HyperParameters"]
    assert (parameters["lr"], parameters["layers"], parameters["epochs"]) == ("0.01", "2", "3")
    assert parameters["_tuning_objective_metric"] == "accuracy"
    made.platform.validate(job)
