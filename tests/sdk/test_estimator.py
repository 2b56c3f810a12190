"""An estimator: its arguments, the request that they become, what is refused, what `fit` does, and `attach`."""

import copy
import json
import sys
import types
from pathlib import PurePosixPath

import numpy as np
import pytest
from fakes.estimators import ROLE, estimator
from fakes.platforms import RecordingPlatform

from scriptmode import MPI, Estimator, InstanceGroup, ParameterServer, SpecError, TensorFlow, TrainingInput, TrainingJob
from scriptmode.containers import default_image
from scriptmode.errors import JobNotFoundError, RequestError
from scriptmode.testing import FakeSageMaker


@pytest.mark.parametrize(
    ("make", "arguments", "model_dir"),
    [
        pytest.param(Estimator, {}, None, id="a plain estimator gives none"),
        pytest.param(Estimator, {"model_dir": "s3://m/dir"}, '"s3://m/dir"', id="as given"),
        pytest.param(TensorFlow, {}, '"s3://out/job-1/model"', id="below the output path"),
        pytest.param(TensorFlow, {"output_path": "s3://b/x/"}, '"s3://b/x/job-1/model"', id="below the given path"),
        pytest.param(TensorFlow, {"distribution": MPI(2)}, '"/opt/ml/model"', id="MPI saves in the container"),
        pytest.param(TensorFlow, {"model_dir": False}, None, id="left out"),
        pytest.param(TensorFlow, {"model_dir": 0}, None, id="false"),
        pytest.param(TensorFlow, {"model_dir": 1}, '"s3://out/job-1/model"', id="true"),
        pytest.param(TensorFlow, {"hyperparameters": {"model_dir": "here"}}, '"here"', id="the caller's own"),
    ],
)
def test_model_dir_follows_the_tensorflow_rules(code, make, arguments, model_dir):
    made = make(
        entry_point="train.py", source_dir=code, role=ROLE, instance_type="ml.m5.large", platform=RecordingPlatform(),
        **arguments,
    )  # fmt: skip
    assert made.request(job_name="job-1")["HyperParameters"].get("model_dir") == model_dir


def test_the_callers_objects_are_copied_and_never_changed(code):
    given = {
        "hyperparameters": {"layers": [1]}, "distribution": {"mpi": {"enabled": True}}, "environment": {"A": "b"},
        "tags": [{"Key": "k", "Value": "v"}],
    }  # fmt: skip
    before = copy.deepcopy(given)
    made = estimator(code, **given)
    made.fit(TrainingInput("s3://b/x"), logs=False)
    assert given == before
    given["hyperparameters"]["layers"].append(2)
    made.hyperparameters()["layers"].append(3)
    made.max_run = 60
    assert made.request()["HyperParameters"]["layers"] == "[1]"
    made.set_hyperparameters(layers=[3])
    assert made.hyperparameters() == {"layers": [3]}


def test_v1_names_are_taken_and_warned_of(code):
    with pytest.warns(DeprecationWarning) as warnings:
        made = Estimator(
            entry_point="train.py", source_dir=code, role=ROLE, train_instance_count=3,
            train_instance_type="ml.m5.large", train_max_run=60, image_name="img",
            distributions={"parameter_server": {"enabled": True}}, platform=RecordingPlatform(),
        )  # fmt: skip
    assert {str(w.message).rpartition(" ")[2] for w in warnings} == {
        "instance_count", "instance_type", "max_run", "image_uri", "distribution",
    }  # fmt: skip
    assert warnings[0].filename == __file__
    request = made.request()
    assert request["ResourceConfig"]["InstanceCount"] == 3
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}
    assert made.spec.distribution == ParameterServer()


def test_an_unknown_argument_is_suggested_a_known_one(code):
    with pytest.raises(TypeError, match="no argument 'instance_cuont'; did you mean 'instance_count'"):
        estimator(code, instance_cuont=2)
    with pytest.raises(TypeError, match="no argument 'gpus' and 'epochs'; give the script's own as hyperparameters={"):
        estimator(code, gpus=2, epochs=3)


def test_a_fifth_positional_argument_is_refused_with_the_names_of_the_four():
    with pytest.raises(TypeError, match=r"4 positional arguments \(image_uri, role, instance_count, instance_type\)"):
        Estimator("train.py", "role", 1, "local_process", "image")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instance_count": 0}, "instance_count is 0"),
        ({"instance_type": None}, "instance_type is missing"),
        ({"use_spot_instances": True}, "needs max_wait"),
        ({"max_wait": 10}, "max_wait is for spot"),
        (
            {"use_spot_instances": True, "max_wait": 10, "max_run": 20},
            "max_wait is 10; give a whole number (int) of at least 20, which is max_run (20 s)",
        ),
        ({"framework_version": 2.3, "image_uri": None}, "framework_version is 2.3; give a string: '2.3'"),
        ({"output_path": PurePosixPath("/tmp/x")}, "output_path is PurePosixPath('/tmp/x'); give an 's3:"),
        ({"output_path": "file:///o\0x"}, r"output_path is 'file:///o\x00x', which has a NUL character; correct it"),
        ({"entry_point": None}, "need entry_point"),
        ({"entry_point": 3}, "entry_point is 3; give a string"),
        ({"source_dir": 3}, "source_dir is 3; give a string"),
        ({"entry_point": None, "source_dir": None, "distribution": MPI()}, "give entry_point"),
        ({"dependencies": "library"}, "one string"),
        ({"tags": ["a"]}, "tags is ['a']"),
        ({"environment": {"A": 1}}, "environment['A'] is of type int"),
        ({"environment": {"TF_CONFIG": "notjson"}}, "environment['TF_CONFIG'] is not a JSON object"),
        ({"metric_definitions": [{"Name": "loss", "Regex": 5}]}, "give a list of {'Name': ..., 'Regex': ...}"),
        ({"source_dir": "s3://b/sourcedir.tar.gz", "dependencies": ["x"]}, "packed already"),
        ({"distribution": ParameterServer}, "distribution is <class"),
        ({"instance_groups": [InstanceGroup("a", "ml.m5.large", 1)]}, "leave out instance_count"),
        ({"distribution": MPI(instance_groups=("a",))}, "instance group 'a'"),
        ({"enable_infra_check": "yes"}, "enable_infra_check is 'yes'; give True or False"),
        ({"training_plan": 3}, "training_plan is 3; give a string"),
        ({"instance_placement_config": 5}, "instance_placement_config is 5; give a dict"),
    ],
)
def test_a_wrong_argument_is_named_when_the_estimator_is_made(code, arguments, message):
    with pytest.raises(SpecError) as caught:
        estimator(code, **arguments)
    assert message in str(caught.value)


def test_without_a_script_hyperparameters_are_plain_text():
    made = Estimator("img", ROLE, 1, "ml.m5.large", hyperparameters={"k": 10, "n": "x"}, platform=RecordingPlatform())
    assert made.request()["HyperParameters"] == {"k": "10", "n": "x"}


def test_containers_of_this_machine_have_this_projects_image(code):
    here = {"instance_type": "local", "platform": None}
    asked = estimator(code, image_uri=None, framework_version="2.15", **here).request()
    assert asked["AlgorithmSpecification"]["TrainingImage"] == default_image("2.15.1")
    newest = estimator(code, image_uri=None, **here).request()
    assert newest["AlgorithmSpecification"]["TrainingImage"] == default_image()
    own = estimator(code, image_uri="mine:1", **here).request()
    assert own["AlgorithmSpecification"]["TrainingImage"] == "mine:1"


def test_a_script_in_the_place_of_the_image_is_named():
    for arguments in (("train.py", "role", 1, "local_process"), ("train.py", "local_process", 2)):
        with pytest.raises(SpecError, match=r"image_uri is 'train.py', a script; write entry_point='train.py'"):
            Estimator(*arguments)


def test_under_network_isolation_the_script_travels_as_a_channel(code):
    request = estimator(code, enable_network_isolation=True, input_mode="Pipe").request("s3://b/x")
    parameters, carried = request["HyperParameters"], request["InputDataConfig"][1]
    assert carried["ChannelName"] == "code"
    assert carried["InputMode"] == "File"
    assert carried["DataSource"]["S3DataSource"]["S3Uri"].endswith("/sourcedir.tar.gz")
    assert parameters["sagemaker_submit_directory"] == '"/opt/ml/input/data/code/sourcedir.tar.gz"'
    with pytest.raises(SpecError, match="channel 'code' carries the script"):
        estimator(code, enable_network_isolation=True).request({"code": "s3://b/x"})


def test_an_argument_is_read_as_it_was_given(code):
    made = estimator(code, tags={"team": "vision"})
    assert (made.instance_count, made.role, made.tags) == (2, ROLE, {"team": "vision"})
    assert made.max_run is None
    assert repr(made) == "Estimator('train.py' on 2 x ml.p3.2xlarge)"


def test_an_argument_that_is_set_counts_for_the_jobs_that_follow(code):
    platform = RecordingPlatform()
    made = estimator(code, platform=platform)
    job = made.fit(wait=False)
    made.instance_count = 8
    made.environment = {"A": "b"}
    made.set_hyperparameters(epochs=3)
    with pytest.raises(SpecError, match=r"hyperparameters have names; write set_hyperparameters\(\*\*values\)"):
        made.set_hyperparameters({"epochs": 4})
    made.max_run = 60
    assert made.latest_training_job is job
    made.fit(wait=False)
    first, second = platform.created
    assert first["ResourceConfig"]["InstanceCount"] == 2
    assert second["ResourceConfig"]["InstanceCount"] == 8
    assert second["Environment"] == {"A": "b"}
    assert second["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}
    assert second["HyperParameters"]["epochs"] == "3"


@pytest.mark.parametrize("count", [0, 2, np.array([2, 3])], ids=["0", "2", "an array"])
def test_a_value_given_under_both_names_is_refused(code, count):
    with pytest.raises(TypeError, match="got both 'train_instance_count' and 'instance_count'"):
        estimator(code, instance_count=count, train_instance_count=4)


def test_a_value_that_cannot_be_is_refused_when_it_is_set_and_changes_nothing(code):
    made = estimator(code)
    with pytest.raises(SpecError, match="instance_count is 0"):
        made.instance_count = 0
    assert made.instance_count == 2
    made.set_hyperparameters(sagemaker_program="other.py")
    assert made.request()["HyperParameters"]["sagemaker_program"] == '"train.py"'
    assert made.request()["ResourceConfig"]["InstanceCount"] == 2


IN_GROUPS = {"instance_count": None, "instance_type": None}
NO_IMAGE = {"instance_type": "local", "image_uri": None}


class PipelineSession(FakeSageMaker):
    """By this name the SageMaker SDK has a session that starts nothing."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instance_count": np.float64(2.5)}, "instance_count is .*2.5.*; give a whole number"),
        (IN_GROUPS | {"instance_groups": [{"InstanceGroupName": "a"}]}, "give InstanceGroup"),
        (IN_GROUPS | {"instance_groups": []}, "instance_groups is empty"),
        ({"platform": None, "sagemaker_session": PipelineSession()}, "is a PipelineSession"),
        ({"platform": None, "sagemaker_session": FakeSageMaker}, "give a boto3.Session"),
        ({"disable_output_compression": "yes"}, "disable_output_compression is 'yes'; give True or False"),
        ({"source_dir": "s3://b/folder/"}, "a folder in S3"),
        ({"source_dir": "s3://b/train.py"}, "train.py', which is not a tar archive; give"),
        ({"tags": {"a": None}}, r"tags\['a'\] is None"),
        ({"hyperparameters": {"x": np.zeros(3)}}, r"give its .tolist\(\)"),
        ({"hyperparameters": {"x": float("nan")}}, "'x' is nan, which JSON does not have; give a finite number"),
        ({"environment": {"SCRIPTMODE_STOP_GRACE_SECONDS": "-1"}}, r"'\] is '-1'; give a number of seconds from 0 on"),
        ({"environment": {"SCRIPTMODE_HOST_TIMEOUT_SECONDS": "0"}}, "is '0'; give a number of seconds above 0"),
        ({"environment": {"SCRIPTMODE_HANG_ACTION": "explode"}}, "is 'explode'; give fail or continue"),
        (NO_IMAGE | {"instance_type": "local_gpu"}, "image_uri is missing; 'local_gpu' needs an image for GPUs"),
        (NO_IMAGE | {"entry_point": None, "source_dir": None}, "image_uri and entry_point are missing"),
        ({"instance_type": "ml.local"}, "'ml.local' is neither"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(code, arguments, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **({"platform": None} | arguments) if "instance_type" in arguments else arguments).request()


def test_a_wait_of_the_wrong_kind_is_named(code):
    with pytest.raises(SpecError, match="wait is 'False'; give True or False"):
        estimator(code).fit(wait="False")
    with pytest.raises(SpecError, match="live is 'yes'; give True, False"):
        estimator(code).fit(live="yes")
    job = estimator(code).fit(wait=False)
    for arguments in ({"timeout": "5"}, {"poll": 0}, {"poll": "x"}):
        with pytest.raises(SpecError, match="give seconds"):
            job.wait(**arguments)


def test_a_class_of_ones_own_keeps_its_attributes(code):
    class Own(TensorFlow):
        def __init__(self, size, **arguments):
            self.size = size
            super().__init__(instance_count=size, **arguments)

    made = Own(3, entry_point="train.py", source_dir=code, role=ROLE, instance_type="ml.m5.large", image_uri="i")
    made.max_run = 5
    assert (made.size, made.instance_count, made.max_run) == (3, 3, 5)
    with pytest.warns(UserWarning, match="no argument 'instnce_count'; did you mean 'instance_count'"):
        made.instnce_count = 2


def test_a_source_is_stored_where_the_request_says(code):
    platform = RecordingPlatform()
    made = estimator(code, platform=platform, code_location="s3://mine/code/")
    uri = json.loads(made.request()["HyperParameters"]["sagemaker_submit_directory"])
    assert (platform.stored, platform.created) == ({}, [])
    made.fit(wait=False)
    assert uri.startswith("s3://mine/code/")
    assert list(platform.stored) == [uri]


def test_a_stored_request_is_the_request_and_names_a_source_that_is_stored(code):
    platform = RecordingPlatform()
    request = estimator(code, platform=platform).stored_request("s3://b/x", job_name="job-1")
    assert list(platform.stored) == [json.loads(request["HyperParameters"]["sagemaker_submit_directory"])]
    assert request == estimator(code).request("s3://b/x", job_name="job-1")
    assert platform.created == []


def test_an_interrupt_while_the_job_is_created_still_tells_its_name(code):
    class Interrupted(RecordingPlatform):
        def create(self, request):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="may have been started: scriptmode describe job-1") as caught:
        estimator(code, platform=Interrupted()).fit(job_name="job-1")
    assert caught.value.job_name == "job-1"


@pytest.mark.parametrize("is_interactive", [False, True])
def test_an_interrupted_wait_says_how_to_come_back(code, capsys, monkeypatch, is_interactive):
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)

    class Interrupted(RecordingPlatform):
        def log_events(self, name, *, follow, on_description=None):
            raise KeyboardInterrupt
            yield

    platform = Interrupted()
    made = estimator(code, platform=platform)
    with pytest.raises(KeyboardInterrupt):
        made.fit()
    said = capsys.readouterr().err
    name = made.latest_training_job.name
    assert f"scriptmode logs -f {name}" in said
    assert f"scriptmode stop {name}" in said
    assert (f"TrainingJob.attach({name!r}).follow()" in said) == is_interactive
    assert platform.stopped == []


ATTACHED = {
    "mpi": {"distribution": MPI(4, "-x A=b"), "hyperparameters": {"epochs": 3, "name": "x y"}},
    "groups": {
        "instance_count": None,
        "instance_type": None,
        "instance_groups": [InstanceGroup("a", "ml.m5.large", 1), InstanceGroup("b", "ml.c5.large", 2)],
        "distribution": MPI(instance_groups=("b",)),
    },
    "no script": {"entry_point": None, "source_dir": None, "hyperparameters": {"k": "10"}},
    "isolated": {"enable_network_isolation": True, "enable_remote_debug": False},
}


@pytest.mark.parametrize("arguments", ATTACHED.values(), ids=ATTACHED)
def test_attach_sets_up_what_would_start_the_same_job_again(code, arguments):
    platform = RecordingPlatform(["Completed"])
    job = estimator(code, platform=platform, **arguments).fit(wait=False, job_name="job-1")
    attached = Estimator.attach(job.name, platform=platform)
    assert attached.latest_training_job.name == "job-1"
    assert attached.request(job_name="job-1") == platform.created[0]


@pytest.mark.parametrize("platform", ["lcoal", RecordingPlatform], ids=["a word", "a class"])
def test_a_platform_is_a_word_or_an_object_wherever_it_is_an_argument(code, platform):
    for call in (Estimator.attach, TrainingJob.attach, lambda _, platform: estimator(code, platform=platform)):
        with pytest.raises(SpecError, match="give 'local', 'sagemaker' or a platform object"):
            call("job-1", platform=platform)
    with pytest.raises(JobNotFoundError, match="no training job named 'job-1'"):
        Estimator.attach("job-1", platform="local")


def test_each_fit_is_a_fresh_job_with_its_own_model_dir(code):
    platform = RecordingPlatform(["Completed"])
    arguments = {"entry_point": "train.py", "source_dir": code, "role": ROLE, "instance_type": "ml.m5.large"}
    made = TensorFlow(**arguments, platform=platform)
    names = [made.fit(wait=False).name for _ in range(2)]
    names.append(Estimator.attach(names[0], platform=platform).fit(wait=False, job_name="job-3").name)
    assert len(set(names)) == 3
    directories = [request["HyperParameters"]["model_dir"] for request in platform.created]
    assert directories == [f'"s3://out/{name}/model"' for name in names]


def test_a_plain_field_is_copied_from_any_mapping(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    inner = {"UltraServerId": "1", "InstanceCount": 1}
    given = types.MappingProxyType({"EnableMultipleJobs": True, "PlacementSpecifications": [inner]})
    made = Estimator("img", ROLE, 1, "ml.m5.large", instance_placement_config=given, output_path="s3://out")
    inner["UltraServerId"] = "other"
    config = made.request()["ResourceConfig"]["InstancePlacementConfig"]
    placed = {"UltraServerId": "1", "InstanceCount": 1}
    assert config == {"EnableMultipleJobs": True, "PlacementSpecifications": [placed]}


def test_a_registry_without_its_access_mode_names_the_argument_to_give(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:login"
    made = Estimator(
        "img", ROLE, 1, "ml.m5.large", training_repository_credentials_provider_arn=arn, output_path="s3://out"
    )
    with pytest.raises(RequestError, match="give training_repository_access_mode"):
        made.request()
