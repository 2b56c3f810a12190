"""Calls as users of the SageMaker SDK v2 write them: the same meaning here, or an error with the next step."""

import json
import warnings

import numpy as np
import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform

from scriptmode import MPI, Estimator, ParameterServer, ShuffleConfig, SpecError, TensorFlow, TrainingInput
from scriptmode._core.spec.training_job import Limits
from scriptmode.testing import FakeSageMaker


def test_a_script_in_s3_is_refused(code):
    with pytest.raises(SpecError, match="entry_point is 's3://b/train.py', but a script is a file of this machine"):
        estimator(code, entry_point="s3://b/train.py", source_dir=None).request()


@pytest.mark.parametrize(
    ("name", "value", "category"),
    [
        ("script_mode", True, DeprecationWarning),
        ("script_mode", False, UserWarning),
        ("training_steps", 1000, UserWarning),
    ],
)
def test_an_argument_that_v2_ignores_is_warned_of_and_ignored(code, name, value, category):
    with pytest.warns(category, match=f"^{name}={value!r} is an argument of SageMaker SDK v1 and has no effec") as seen:
        made = estimator(code, **{name: value})
    assert [each.filename for each in seen] == [estimator.__code__.co_filename]
    assert made.request(job_name="job-1") == estimator(code).request(job_name="job-1")
    # Neither copied nor warned of again by what sets another argument.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.instance_count = 3


@pytest.mark.parametrize("name", ["training_steps", "compiler_config"])
def test_an_argument_without_effect_may_be_none(code, name):
    assert estimator(code, **{name: None}).request(job_name="job-1") == estimator(code).request(job_name="job-1")


def test_the_training_compiler_is_refused(code):
    with pytest.raises(TypeError, match="no argument 'compiler_config' any more; leave it out: AWS makes no images"):
        estimator(code, compiler_config=object())


def test_the_configurations_of_v2_are_those_of_the_arguments(code):
    given = {"subnets": ["s"], "security_group_ids": ["g"], "enable_remote_debug": False}
    told = [{"Subnets": ["s"], "SecurityGroupIds": ["g"]}, {"EnableRemoteDebug": False}, None]
    for made, expected in ((estimator(code), [None] * 3), (estimator(code, **given), told)):
        assert [made.get_vpc_config(), made.get_remote_debug_config(), made.get_session_chaining_config()] == expected
        assert (made.get_vpc_config(None), made.training_image_uri("eu-west-1")) == (None, "registry/team/tf:2.15")
        with pytest.raises(SpecError, match="region is 'us-east-1', but the jobs' is 'eu-west-1'; give a"):
            made.training_image_uri(region="us-east-1")


def test_the_methods_of_v2_that_change_a_running_job_call_the_service(code):
    fake = FakeSageMaker()
    made = estimator(code, platform=None, sagemaker_session=fake, enable_remote_debug=True)
    name = made.fit(wait=False, logs=False).name
    made.disable_profiling()
    made.disable_remote_debug()
    changes = {"ProfilerConfig": {"DisableProfiler": True}, "RemoteDebugConfig": {"EnableRemoteDebug": False}}
    sent = [call.arguments for call in fake.calls if call.operation == "update_training_job"]
    assert sent == [{"TrainingJobName": name, key: value} for key, value in changes.items()]
    described = fake.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert ({**described, **changes}, made.enable_remote_debug) == (described, False)


def test_logs_shows_the_log_of_the_latest_job_and_jobs_has_all(code, capsys):
    made = estimator(code)
    with pytest.raises(SpecError, match=r"latest_training_job is None, and logs\(\) is about it; call fit"):
        made.logs()
    assert [made.fit(wait=False) for _ in range(2)] == made.jobs
    made.logs()
    assert capsys.readouterr().out.count("algo-1") == 1


def attached_to(request, **changes):
    """An estimator on a job whose request has fields that the constructor refuses."""
    fake = FakeSageMaker()
    fake.client("sagemaker").create_training_job(**{**request, **changes})
    return Estimator.attach(request["TrainingJobName"], fake)


def test_what_an_attached_job_has_wrong_is_put_right_one_attribute_after_the_other(code):
    request = estimator(code).request("s3://bucket/x", job_name="job-1")
    request["HyperParameters"] |= {
        "sagemaker_parameter_server_enabled": "true",
        "sagemaker_mpi_enabled": "true",
        "rate": "0.5",
    }
    made = attached_to(request, Environment={"TF_CONFIG": "{}"})
    assert made.hyperparameters() == {"rate": 0.5}
    assert made.environment == {"TF_CONFIG": "{}"}
    with pytest.raises(SpecError, match="a job has one, disable the others. It is the attached job.s value; set the a"):
        made.fit()
    made.distribution = ParameterServer()
    with pytest.raises(SpecError, match="gives all 2 hosts one task.* It is the attached job.s value"):
        made.fit()
    made.environment = None
    made.set_hyperparameters(rate=0.25)
    again = made.request("s3://bucket/x", job_name="job-1")
    assert again["HyperParameters"]["rate"] == "0.25"
    assert "sagemaker_mpi_enabled" not in again["HyperParameters"]
    # From now on it is checked like any other.
    with pytest.raises(SpecError, match="instance_count is 0"):
        made.instance_count = 0
    assert made.instance_count == 2


def test_a_job_without_instances_of_its_own_is_attached(code):
    request = estimator(code).request(job_name="job-1")
    del request["ResourceConfig"]["InstanceType"]
    made = attached_to(request)
    with pytest.raises(SpecError, match="instance_type is missing"):
        made.request()
    made.instance_type = "ml.m5.large"
    assert made.request()["ResourceConfig"]["InstanceType"] == "ml.m5.large"


def test_retries_may_have_a_time_to_wait(code):
    made = estimator(code, max_retry_attempts=2, max_run=60, max_wait=120)
    assert made.request()["StoppingCondition"] == {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120}
    with pytest.raises(SpecError, match="max_wait is 30; give a whole number .* of at least 60"):
        estimator(code, max_retry_attempts=2, max_run=60, max_wait=30)
    with pytest.raises(SpecError, match="max_wait is for spot training and for retries; add use_spot_instances=True o"):
        estimator(code, max_wait=10**6)


COUNTS = (
    "instance_count", "volume_size", "max_run", "max_wait", "max_retry_attempts", "keep_alive_period_in_seconds",
    "container_log_level",
)  # fmt: skip


@pytest.mark.parametrize("number", [3.0, np.int64(3), np.float32(3)], ids=lambda number: type(number).__name__)
def test_counts_and_times_may_be_numpys_and_whole_floats(code, number):
    def request(count):
        made = estimator(code, **dict.fromkeys(COUNTS, count), distribution=MPI(processes_per_host=count))
        return made.request(TrainingInput("s3://b/x", shuffle_config=ShuffleConfig(count)), job_name="job-1")

    # NumPy's numbers are not what JSON carries.
    assert json.dumps(request(number)) == json.dumps(request(3))


@pytest.mark.parametrize("number", [2.5, "3", float("nan"), True, np.bool_(1), np.array([1, 2]), None])
def test_a_value_that_is_not_an_integer_is_refused(code, number):
    with pytest.raises(SpecError, match=r"max_run is .*; give a whole number \(int\) of at least 1"):
        Limits(max_run=number)


@pytest.mark.parametrize("text", ["x" * 5000, "~no-such-user/data", "file:" + "x" * 5000])
def test_what_cannot_be_a_path_here_is_refused_like_any_other_text(code, text):
    with pytest.raises(SpecError, match=r"inputs ('.*': there is no file or directory '|is 'file:)"):
        estimator(code).request(text)


UNKNOWN_WORD = "logs is .*; give True or False, or 'All', 'Training', 'Rules' or 'None'"
SHOW, HIDE = ["All", "all", ["Training", "Rules"], ("All",), True, 1], ["None", "none", ["None"], [], False, 0]


@pytest.mark.parametrize(("logs", "times"), [*((logs, 3) for logs in SHOW), *((logs, 0) for logs in HIDE)])
def test_v2s_words_show_or_hide_the_log(code, logs, times, capsys):
    job = estimator(code).fit(logs=logs)
    assert job.wait(logs=logs)["TrainingJobStatus"] == "Completed"
    assert job.wait(bool(logs) if logs in (0, 1) else logs)["TrainingJobStatus"] == "Completed"
    shown = capsys.readouterr().out
    assert (shown.count("algo-1"), shown == "") == (times, times == 0)


@pytest.mark.parametrize("logs", ["al", ["Al"], [["All"]]])
def test_other_words_for_logs_are_refused(code, logs):
    made = estimator(code)
    with pytest.raises(SpecError, match=UNKNOWN_WORD):
        made.fit(logs=logs)
    assert made.latest_training_job is None
    with pytest.raises(SpecError, match=UNKNOWN_WORD):
        made.fit(wait=False).wait([logs])


SWITCHES = (
    "use_spot_instances", "disable_output_compression", "enable_network_isolation", "encrypt_inter_container_traffic",
    "enable_sagemaker_metrics", "enable_infra_check", "enable_remote_debug", "disable_profiler",
)  # fmt: skip


@pytest.mark.parametrize(("values", "meaning"), [((0, np.bool_(0)), False), ((1, np.bool_(1), "True"), True)])
def test_a_switch_is_its_truth_as_in_v2(code, values, meaning):
    def request(value):
        servers = {"parameter_server": {"enabled": value}, "smdistributed": {"dataparallel": {"enabled": 0}}}
        given = {"max_wait": 10**6} if meaning else {"debugger_hook_config": int(value)}
        made = estimator(code, **dict.fromkeys(SWITCHES, value), **given, distribution=servers)
        return made.request(job_name="job-1")

    assert [request(value) for value in values] == [request(meaning)] * len(values)
    assert (request(meaning).get("EnableManagedSpotTraining") is True) is meaning


@pytest.mark.parametrize("wait", [0, None, np.bool_(0)])
def test_a_wait_that_is_false_does_not_wait(code, wait, capsys):
    assert estimator(code).fit(wait=wait, logs=None).platform.life == ["InProgress", "Completed"]
    assert capsys.readouterr() == ("", "")


def test_a_log_level_may_be_its_name(code):
    info, number = (estimator(code, container_log_level=level).request(job_name="job-1") for level in ("info", 20))
    assert info == number
    with pytest.raises(SpecError, match="container_log_level is 'LOUD'; give a whole .* or a name such as 'INFO'"):
        estimator(code, container_log_level="LOUD")


def test_a_time_and_a_log_to_wait_with_are_refused(code):
    job = estimator(code).fit(wait=False)
    with pytest.raises(SpecError, match="timeout is 5 and logs is 'All'; a job is followed to its end, keep one"):
        job.wait(5, logs="All")


def test_after_fit_the_arguments_left_out_read_as_the_latest_job_has_them(code):
    fake = FakeSageMaker("us-east-1")
    made = TensorFlow(
        entry_point="train.py", source_dir=code, role="arn:aws:iam::123456789012:role/r", image_uri="tf:2",
        instance_type="ml.m5.large", sagemaker_session=fake,
    )  # fmt: skip
    assert (made.output_path, made.model_dir) == (None, None)
    for job in ("job-1", "job-2"):
        made.fit(job_name=job, wait=False)
        path = made.output_path
        assert path == "s3://sagemaker-us-east-1-123456789012/"
        assert made.model_dir == f"{path}{job}/model"
        assert made.latest_training_job.describe()["OutputDataConfig"]["S3OutputPath"] == path[:-1]
    attached = TensorFlow.attach("job-1", fake)
    assert attached.model_dir == f"{path}job-1/model"
    # The next job has one of its own.
    assert attached.request(job_name="job-3")["HyperParameters"]["model_dir"] == f'"{path}job-3/model"'


def test_after_fit_what_was_given_reads_as_it_was_given(code):
    made = TensorFlow(
        entry_point="train.py", source_dir=code, instance_type="ml.m5.large", image_uri="tf:2", model_dir=False,
        output_path="s3://mine/", platform=RecordingPlatform(),
    )  # fmt: skip
    made.fit(logs=False)
    assert (made.output_path, made.model_dir) == ("s3://mine/", False)
    made.model_dir = "s3://mine/model"
    made.fit(logs=False)
    assert made.model_dir == "s3://mine/model"
