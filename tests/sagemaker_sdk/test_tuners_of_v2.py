"""Tuning jobs: what scriptmode requests is what the SageMaker SDK v2 requests for the same construction."""

from pathlib import Path

import pytest
from fakes.output_shapes import against, operation
from sagemaker_sdk.tuner_requests import CASES, HOSTS

from scriptmode._core.request import tuning

#: Script mode's own hyperparameters: where the source is, and how v2's attach finds the class.
_OWN = ("sagemaker_", "model_dir")


@pytest.fixture(scope="module")
def requests(v2, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuners")
    (folder / "train.py").touch()
    return v2.run(folder, Path(__file__).with_name("tuner_requests.py"), AWS_DEFAULT_REGION="us-east-1")


def compared(request):
    """What both have to say; empty lists of ranges, the source and the place of the hosts are not compared."""
    found = {name: request[name] for name in ("WarmStartConfig", "Autotune", "Tags") if name in request}
    if "WarmStartConfig" in found:
        found["WarmStartConfig"]["ParentHyperParameterTuningJobs"].sort(key=lambda each: list(each.values()))
    config = request["HyperParameterTuningJobConfig"]
    found["HyperParameterTuningJobConfig"] = {key: ranged(value) for key, value in config.items()}
    definitions = request.get("TrainingJobDefinitions") or [request["TrainingJobDefinition"]]
    found["definitions"] = [definition(each) for each in definitions]
    return found


def ranged(value):
    if not isinstance(value, dict) or not any(key.endswith(("ParameterRanges", "AutoParameters")) for key in value):
        return value
    # v2 lets the service choose values of script mode's own hyperparameters, too, which names the script.
    own = {key: [each for each in found if not each["Name"].startswith(_OWN)] for key, found in value.items()}
    return {key: each for key, each in own.items() if each}


def definition(given):
    names = ("DefinitionName", "TuningObjective", "HyperParameterRanges", "InputDataConfig", "RoleArn", "VpcConfig")
    found = {name: ranged(given[name]) for name in names if name in given}
    static = given["StaticHyperParameters"]
    found["StaticHyperParameters"] = {key: each for key, each in static.items() if not key.startswith(_OWN)}
    found["MetricDefinitions"] = given["AlgorithmSpecification"]["MetricDefinitions"]
    resources = given.get("HyperParameterTuningResourceConfig", {})
    found["hosts"] = (
        resources if "InstanceConfigs" in resources else tuning.with_resource_config(given)["ResourceConfig"]
    )
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first time it installs v2
@pytest.mark.parametrize("name", [*CASES, *HOSTS, "several", "several with hosts"])
def test_the_request_is_the_one_of_v2(requests, name):
    ours, theirs = requests["ours"][name], requests["v2"][name]
    assert compared(ours) == compared(theirs)
    assert against(operation("CreateHyperParameterTuningJob").input_shape, ours) == ""
