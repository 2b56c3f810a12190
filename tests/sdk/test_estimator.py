import copy
import json

import pytest
from fakes.estimators import ROLE, estimator
from fakes.platforms import RecordingPlatform

from scriptmode import (
    MPI,
    Estimator,
    InstanceGroup,
    ParameterServer,
    SpecError,
    TensorFlow,
    TrainingInput,
)
from scriptmode.containers import default_image


def test_the_call_becomes_one_request(code):
    request = estimator(
        code,
        distribution={"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "-x NCCL_DEBUG=INFO"}},
        hyperparameters={"epochs": 60},
        input_mode="Pipe",
    ).request({"train": "s3://bucket/train", "eval": "s3://bucket/eval"}, job_name="job-1")
    submitted = json.loads(request["HyperParameters"].pop("sagemaker_submit_directory"))
    assert submitted.startswith("s3://out/source/")
    assert submitted.endswith("/sourcedir.tar.gz")

    def channel(name):
        return {
            "ChannelName": name,
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": f"s3://bucket/{name}",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }

    assert request == {
        "TrainingJobName": "job-1",
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "registry/team/tf:2.15", "TrainingInputMode": "Pipe"},
        "HyperParameters": {
            "epochs": "60",
            "sagemaker_program": '"train.py"',
            "sagemaker_container_log_level": "20",
            "sagemaker_job_name": '"job-1"',
            "sagemaker_region": '"eu-west-1"',
            "sagemaker_mpi_enabled": "true",
            "sagemaker_mpi_num_of_processes_per_host": "4",
            "sagemaker_mpi_custom_mpi_options": '"-x NCCL_DEBUG=INFO"',
        },
        "InputDataConfig": [channel("train"), channel("eval")],
        "OutputDataConfig": {"S3OutputPath": "s3://out"},
        "ResourceConfig": {"InstanceCount": 2, "InstanceType": "ml.p3.2xlarge", "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
    }


@pytest.mark.parametrize(
    ("distribution", "switches"),
    [
        ({"parameter_server": {"enabled": True}}, {"sagemaker_parameter_server_enabled": "true"}),
        (
            ParameterServer(coordinator=True),
            {"sagemaker_parameter_server_enabled": "true", "sagemaker_parameter_server_coordinator": "true"},
        ),
        (
            {"multi_worker_mirrored_strategy": {"enabled": True}},
            {"sagemaker_multi_worker_mirrored_strategy_enabled": "true"},
        ),
        (MPI(), {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_custom_mpi_options": '""'}),
    ],
    ids=["between-graph", "coordinator", "mirrored", "mpi"],
)
def test_a_distribution_becomes_its_switches(code, distribution, switches):
    parameters = estimator(code, distribution=distribution).request()["HyperParameters"]
    kinds = ("parameter_server", "multi_worker", "mpi")
    assert {key: value for key, value in parameters.items() if any(kind in key for kind in kinds)} == switches


@pytest.mark.parametrize(
    ("make", "arguments", "model_dir"),
    [
        pytest.param(Estimator, {}, None, id="a plain estimator gives none"),
        pytest.param(Estimator, {"model_dir": "s3://m/dir"}, '"s3://m/dir"', id="as given"),
        pytest.param(TensorFlow, {}, '"s3://out/job-1/model"', id="below the output path"),
        pytest.param(TensorFlow, {"output_path": "s3://b/x/"}, '"s3://b/x/job-1/model"', id="below the given path"),
        pytest.param(TensorFlow, {"distribution": MPI(2)}, '"/opt/ml/model"', id="MPI saves in the container"),
        pytest.param(TensorFlow, {"model_dir": False}, None, id="left out"),
        pytest.param(TensorFlow, {"hyperparameters": {"model_dir": "here"}}, '"here"', id="the caller's own"),
    ],
)
def test_model_dir_follows_the_tensorflow_rules(code, make, arguments, model_dir):
    made = make(
        entry_point="train.py", source_dir=code, role=ROLE, instance_type="ml.m5.large", platform=RecordingPlatform(),
        **arguments,
    )  # fmt: skip
    assert made.request(job_name="job-1")["HyperParameters"].get("model_dir") == model_dir


def test_the_callers_objects_are_never_changed(code):
    given = {
        "hyperparameters": {"layers": [1, 2]},
        "distribution": {"mpi": {"enabled": True}},
        "environment": {"A": "b"},
        "tags": [{"Key": "k", "Value": "v"}],
    }
    before = copy.deepcopy(given)
    inputs = {"train": TrainingInput("s3://b/x")}
    made = estimator(code, **given)
    made.fit(inputs, logs=False)
    made.set_hyperparameters(layers=[3])
    made.hyperparameters()["layers"] = None
    assert given == before
    assert inputs == {"train": TrainingInput("s3://b/x")}
    assert made.hyperparameters() == {"layers": [3]}


def test_request_stores_and_starts_nothing(code):
    platform = RecordingPlatform()
    estimator(code, platform=platform).request("s3://b/x")
    assert (platform.stored, platform.created) == ({}, [])


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


def test_a_fifth_positional_argument_is_refused_with_the_names_of_the_four():
    with pytest.raises(
        TypeError, match=r"takes 4 positional arguments \(image_uri, role, instance_count, instance_type\)"
    ):
        Estimator("train.py", "role", 1, "local_process", "image")


def test_one_argument_under_both_its_names_is_refused(code):
    with pytest.raises(TypeError, match="both 'train_instance_count' and 'instance_count'"):
        estimator(code, train_instance_count=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instance_count": 0}, "instance_count is 0"),
        ({"instance_count": "2"}, "instance_count is '2'"),
        ({"instance_type": None}, "instance_type is missing"),
        ({"input_mode": "Pip"}, "did you mean 'Pipe'?"),
        ({"max_run": 0}, "max_run is 0"),
        ({"use_spot_instances": True}, "needs max_wait"),
        ({"max_wait": 10}, "max_wait is for spot"),
        (
            {"use_spot_instances": True, "max_wait": 10, "max_run": 20},
            "max_wait is 10; give a whole number (int) of at least 20, which is max_run (20 s)",
        ),
        ({"framework_version": 2.3, "image_uri": None}, "framework_version is 2.3; give a string: '2.3'"),
        ({"subnets": ["s"]}, "go together"),
        ({"output_path": "/tmp/x"}, "output_path is '/tmp/x'"),
        ({"entry_point": None}, "need entry_point"),
        ({"entry_point": None, "source_dir": None, "distribution": MPI()}, "give entry_point"),
        ({"dependencies": "library"}, "one string"),
        ({"tags": ["a"]}, "tags is ['a']"),
        ({"metric_definitions": [{"Name": "a"}]}, "metric_definitions is"),
        ({"hyperparameters": [1]}, "hyperparameters is [1]"),
        ({"git_config": {"repo": "x"}}, "git_config['repo'] is 'x'"),
        ({"environment": {"A": 1}}, "environment['A'] is of type int"),
        ({"environment": {"A": None}}, "environment['A'] is None"),
        ({"role": 5}, "role is 5"),
        ({"metric_definitions": [{"Name": "loss", "Regex": 5}]}, "give a list of {'Name': ..., 'Regex': ...}"),
        ({"source_dir": "s3://b/sourcedir.tar.gz", "dependencies": ["x"]}, "packed already"),
        ({"distribution": ParameterServer}, "distribution is <class"),
        ({"instance_groups": [InstanceGroup("a", "ml.m5.large", 1)]}, "leave out instance_count"),
        ({"checkpoint_local_path": "/x"}, "needs checkpoint_s3_uri"),
        ({"distribution": MPI(instance_groups=("a",))}, "instance group 'a'"),
    ],
)
def test_a_wrong_argument_is_named_when_the_estimator_is_made(code, arguments, message):
    with pytest.raises(SpecError) as caught:
        estimator(code, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "'x' is nan, which JSON does not have; give a finite number"),
        (object(), "cannot be encoded as JSON"),
        ("y" * 2500, "2502 characters when encoded"),
    ],
    ids=["nan", "an object", "too long"],
)
def test_a_hyperparameter_that_cannot_travel_is_named(code, value, message):
    with pytest.raises(SpecError) as caught:
        estimator(code, hyperparameters={"x": value}).request()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("SCRIPTMODE_STOP_GRACE_SECONDS", "-1", "a number of seconds from 0 on"),
        ("SCRIPTMODE_STOP_GRACE_SECONDS", "nan", "a number of seconds from 0 on"),
        ("SCRIPTMODE_HOST_TIMEOUT_SECONDS", "0", "a number of seconds above 0"),
        ("SCRIPTMODE_HANG_SECONDS", "soon", "a number of seconds from 0 on"),
        ("SCRIPTMODE_HANG_ACTION", "explode", "fail or continue"),
        ("SCRIPTMODE_MPI_LAUNCHER", "rsh", "peers or ssh"),
        ("SCRIPTMODE_LOG_PREFIX", "yes", "0 or 1"),
    ],
)
def test_a_setting_the_launcher_would_refuse_is_refused_before_there_is_a_job(code, name, value, allowed):
    with pytest.raises(SpecError) as caught:
        estimator(code, environment={name: value}).request()
    assert str(caught.value) == f"environment[{name!r}] is {value!r}; give {allowed}"


def test_a_reserved_hyperparameter_is_refused(code):
    with pytest.raises(SpecError, match="'sagemaker_program'.*rename"):
        estimator(code, hyperparameters={"sagemaker_program": "x"}).request()


def test_without_a_script_hyperparameters_are_plain_text():
    made = Estimator(
        "img", ROLE, 1, "ml.m5.large", hyperparameters={"k": 10, "name": "x"}, platform=RecordingPlatform()
    )
    assert made.request()["HyperParameters"] == {"k": "10", "name": "x"}


def test_containers_of_this_machine_have_this_projects_image(code):
    here = {"instance_type": "local", "platform": None}
    asked = estimator(code, image_uri=None, framework_version="2.15", **here).request()
    assert asked["AlgorithmSpecification"]["TrainingImage"] == default_image("2.15.1")
    newest = estimator(code, image_uri=None, **here).request()
    assert newest["AlgorithmSpecification"]["TrainingImage"] == default_image()
    own = estimator(code, image_uri="mine:1", **here).request()
    assert own["AlgorithmSpecification"]["TrainingImage"] == "mine:1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"framework_version": "2.14"}, "no image with TensorFlow '2.14', only with 2.15.1 and 2.21.0"),
        ({"instance_type": "local_gpu"}, "image_uri is missing; 'local_gpu' needs an image for GPUs"),
        ({"entry_point": None, "source_dir": None}, "image_uri and entry_point are missing"),
    ],
    ids=["a TensorFlow without an image", "GPUs", "nothing to run"],
)
def test_containers_of_this_machine_without_an_image_are_refused(code, arguments, said):
    with pytest.raises(SpecError, match=said):
        estimator(code, **{"instance_type": "local", "image_uri": None, "platform": None, **arguments}).request()


def test_a_script_in_the_place_of_the_image_is_named():
    with pytest.raises(SpecError, match=r"image_uri is 'train.py', a script; write entry_point='train.py'"):
        Estimator("train.py", instance_count=1, instance_type="local_process")


def test_an_unknown_instance_type_is_named(code):
    with pytest.raises(SpecError, match="'p3' is neither"):
        estimator(code, instance_type="p3", platform=None).request()


def test_an_instance_type_of_ec2_is_answered_with_sagemakers_name(code):
    with pytest.raises(SpecError, match="'p3.2xlarge' is Amazon EC2's name; did you mean 'ml.p3.2xlarge'"):
        estimator(code, instance_type="p3.2xlarge", platform=None).request()


def test_under_network_isolation_the_script_travels_as_a_channel(code):
    request = estimator(code, enable_network_isolation=True, input_mode="Pipe").request("s3://b/x")
    parameters, carried = request["HyperParameters"], request["InputDataConfig"][1]
    assert carried["ChannelName"] == "code"
    assert carried["InputMode"] == "File"
    assert carried["DataSource"]["S3DataSource"]["S3Uri"].endswith("/sourcedir.tar.gz")
    assert parameters["sagemaker_submit_directory"] == '"/opt/ml/input/data/code/sourcedir.tar.gz"'
    with pytest.raises(SpecError, match="channel 'code' carries the script"):
        estimator(code, enable_network_isolation=True).request({"code": "s3://b/x"})


def test_what_is_nested_in_the_callers_objects_is_copied_too(code):
    layers = [1, 2]
    made = estimator(code, hyperparameters={"layers": layers})
    layers.append(3)
    assert made.request()["HyperParameters"]["layers"] == "[1, 2]"
