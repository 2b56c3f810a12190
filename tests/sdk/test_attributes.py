"""An estimator's arguments are its attributes, as users of the SageMaker SDK read and set them."""

import numpy as np
import pytest
from fakes.estimators import ROLE, estimator
from fakes.platforms import RecordingPlatform

from scriptmode import Estimator, ShuffleConfig, SpecError, TensorFlow, TrainingInput, TrainingJob
from scriptmode.testing import FakeSageMaker


def test_an_argument_is_read_as_it_was_given(code):
    made = estimator(code, tags={"team": "vision"})
    assert (made.instance_count, made.role, made.image_uri, made.tags) == (
        2,
        ROLE,
        "registry/team/tf:2.15",
        {"team": "vision"},
    )
    assert made.max_run is None
    assert repr(made) == "Estimator('train.py' on 2 x ml.p3.2xlarge)"


def test_an_argument_that_is_set_counts_for_the_jobs_that_follow(code):
    platform = RecordingPlatform()
    made = estimator(code, platform=platform)
    job = made.fit(wait=False)
    made.instance_count = 8
    made.environment = {"A": "b"}
    made.set_hyperparameters(epochs=3)
    made.max_run = 60
    assert made.latest_training_job is job
    made.fit(wait=False)
    first, second = platform.created
    assert first["ResourceConfig"]["InstanceCount"] == 2
    assert second["ResourceConfig"]["InstanceCount"] == 8
    assert second["Environment"] == {"A": "b"}
    assert second["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}
    assert second["HyperParameters"]["epochs"] == "3"


def test_what_the_caller_changes_later_does_not_come_back_with_an_attribute(code):
    hyperparameters = {"layers": [1]}
    made = estimator(code, hyperparameters=hyperparameters)
    hyperparameters["layers"].append(2)
    made.max_run = 60
    assert made.request()["HyperParameters"]["layers"] == "[1]"


def test_a_v1_name_is_read_by_the_name_it_has_now(code):
    with pytest.warns(DeprecationWarning):
        made = estimator(code, instance_count=None, train_instance_count=3)
    assert made.instance_count == 3
    made.volume_size = 50
    assert made.request()["ResourceConfig"]["InstanceCount"] == 3


@pytest.mark.parametrize("count", [0, 2, np.array([2, 3])], ids=["0", "2", "an array"])
def test_a_value_given_under_both_names_is_refused(code, count):
    with pytest.raises(TypeError, match="got both 'train_instance_count' and 'instance_count'"):
        estimator(code, instance_count=count, train_instance_count=4)


def test_what_an_attached_job_said_is_set_like_any_other(code):
    platform = RecordingPlatform(["Completed"])
    estimator(code, platform=platform).fit(wait=False, job_name="job-1")
    attached = Estimator.attach("job-1", platform=platform)
    attached.instance_count = 5
    assert attached.request()["ResourceConfig"]["InstanceCount"] == 5
    assert attached.spec.ignore_config_defaults


def test_a_value_that_cannot_be_is_refused_when_it_is_set_and_changes_nothing(code):
    made = estimator(code)
    with pytest.raises(SpecError, match="instance_count is 0"):
        made.instance_count = 0
    assert made.instance_count == 2
    assert made.request()["ResourceConfig"]["InstanceCount"] == 2
    with pytest.raises(SpecError, match="reserved"):
        made.set_hyperparameters(sagemaker_program="x")


def test_a_name_that_is_nearly_an_arguments_is_suggested(code):
    made = estimator(code)
    with pytest.raises(AttributeError, match="no attribute 'instance_cuont'; did you mean 'instance_count'"):
        made.instance_cuont = 3
    with pytest.raises(AttributeError, match="did you mean 'instance_count'"):
        made.instance_cuont  # noqa: B018
    made.note = "a user's own"
    assert made.note == "a user's own"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("deploy", "model_data"), ("logs", "print_logs"), ("get_app_url", "tensorboard"), ("nothing", "")],
)
def test_what_the_sagemaker_sdk_had_says_where_it_went(code, name, hint):
    with pytest.raises(AttributeError, match=f"Estimator has no attribute '{name}'.*{hint}"):
        getattr(estimator(code), name)


class OwnEstimator(TensorFlow):
    """A user's own class, with a constructor and attributes of its own."""

    def __init__(self, size, **arguments):
        self.size = size
        super().__init__(instance_count=size, **arguments)


def test_a_class_of_ones_own_keeps_its_attributes(code):
    made = OwnEstimator(
        3, entry_point="train.py", source_dir=code, role=ROLE, instance_type="ml.m5.large", image_uri="i"
    )
    made.max_run = 5
    assert (made.size, made.instance_count, made.max_run) == (3, 3, 5)


class PipelineSession(FakeSageMaker):
    """By this name the SageMaker SDK has a session that starts nothing."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image_uri": 5}, "image_uri is 5; give a string"),
        ({"base_job_name": 5}, "base_job_name is 5; give a string"),
        ({"instance_count": np.float64(2.5)}, "instance_count is .*2.5.*; give a whole number"),
        (
            {"instance_groups": [{"InstanceGroupName": "a"}], "instance_count": None, "instance_type": None},
            "give InstanceGroup",
        ),
        ({"instance_groups": [], "instance_count": None, "instance_type": None}, "instance_groups is empty"),
        ({"platform": "cloud"}, "platform is 'cloud'"),
        ({"platform": None, "sagemaker_session": PipelineSession()}, "is a PipelineSession"),
        ({"platform": None, "sagemaker_session": FakeSageMaker}, "give a boto3.Session"),
        ({"disable_output_compression": "yes"}, "disable_output_compression is 'yes'; give True or False"),
        ({"use_spot_instances": "yes", "max_wait": 100_000}, "use_spot_instances is 'yes'"),
        ({"checkpoint_s3_uri": "s3://b/c", "checkpoint_local_path": "here"}, "give an absolute path on the hosts"),
        ({"source_dir": "s3://b/folder/"}, "a folder in S3"),
        ({"tags": {"a": None}}, r"tags\['a'\] is None"),
        ({"tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}, "'a' 2 times"),
        ({"tags": {"aws:x": "1"}}, "AWS's own"),
        ({"hyperparameters": {"x": np.zeros(3)}}, r"give its .tolist\(\)"),
        ({"instance_type": "ml.local"}, "'ml.local' is neither"),
        ({"instance_type": "ml.m5.large "}, "'ml.m5.large ' is neither"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(code, arguments, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **({"platform": None} | arguments) if "instance_type" in arguments else arguments).request()


def test_a_shuffle_config_of_the_wrong_kind_is_named():
    with pytest.raises(SpecError, match=r"give ShuffleConfig\(seed\)"):
        TrainingInput("s3://b/x", shuffle_config=5)
    assert TrainingInput("s3://b/x", shuffle_config=ShuffleConfig(5)).shuffle_config.seed == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": "3"}, "limit is '3'"),
        ({"created_after": "2026-01-31"}, "give a datetime"),
        ({"name_contains": 5}, "name_contains is 5"),
        ({"platform": 5}, "platform is 5"),
    ],
)
def test_a_listing_of_the_wrong_kind_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        TrainingJob.list(**arguments)


@pytest.mark.parametrize("arguments", [{"timeout": "5"}, {"poll": 0}, {"poll": "x"}])
def test_seconds_of_the_wrong_kind_are_named(code, arguments):
    job = estimator(code).fit(wait=False)
    with pytest.raises(SpecError, match="give seconds"):
        job.wait(**arguments)


def test_a_wait_that_is_not_a_bool_is_refused(code):
    with pytest.raises(SpecError, match="wait is 'False'; give True or False"):
        estimator(code).fit(wait="False")
