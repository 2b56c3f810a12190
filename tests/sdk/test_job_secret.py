"""What hosts on Amazon SageMaker prove themselves to each other with."""

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import Estimator
from scriptmode.platforms.sagemaker.host_secret import with_host_secret
from scriptmode.testing import Life
from scriptmode_runtime.contract import MULTI_WORKER_MIRRORED_ENABLED, SECRET_VARIABLE, decode, enabled

RING = {"multi_worker_mirrored_strategy": {"enabled": True}}
LIFE = Life.completed()


def secret_of(job):
    return job.describe().get("Environment", {}).get(SECRET_VARIABLE)


def start(code, **arguments):
    return started(LIFE, **{"entry_point": "train.py", "source_dir": code, "distribution": RING, **arguments})


def test_hosts_that_train_together_share_a_secret_of_64_hexadecimal_digits(code):
    secrets = {secret_of(start(code, instance_count=2)[1]) for _ in range(2)}
    assert len(secrets) == 2
    assert all(len(bytes.fromhex(secret)) == 32 for secret in secrets)


@pytest.mark.parametrize(
    "arguments",
    [{"instance_count": 1}, {"instance_count": 2, "distribution": None}],
    ids=["one host", "hosts on their own"],
)
def test_hosts_that_do_not_meet_need_none(code, arguments):
    assert secret_of(start(code, **arguments)[1]) is None


@pytest.mark.parametrize("count", [0, 99, 100])
def test_no_secret_is_added_to_as_many_variables_as_the_service_takes(code, count):
    variables = {f"V{number}": "x" for number in range(count)}
    _, job = start(code, instance_count=2, environment=variables)
    assert len(job.describe().get("Environment", {})) == min(count + 1, 100)
    assert (secret_of(job) is None) is (count == 100)


@pytest.mark.parametrize(
    ("text", "is_on"),
    [("true", True), ('"true"', True), ('"True"', True), ("TRUE", True), ("1", True), ('"1"', True),
     ("false", False), ('"no"', False), ("0", False), ("null", False), ("", False), (None, False)],
)  # fmt: skip
def test_a_distribution_is_switched_on_as_the_runtime_reads_it(text, is_on):
    parameters = {} if text is None else {MULTI_WORKER_MIRRORED_ENABLED: text}
    resources = {"InstanceCount": 2, "InstanceType": "ml.m5.large"}
    request = {"HyperParameters": parameters, "ResourceConfig": resources}
    assert (SECRET_VARIABLE in with_host_secret(request).get("Environment", {})) is is_on
    if text is not None:
        assert enabled(decode(text)) is is_on


def test_a_secret_of_the_users_own_is_kept(code):
    _, job = start(code, instance_count=2, environment={SECRET_VARIABLE: "chosen", "A": "b"})
    assert job.describe()["Environment"] == {SECRET_VARIABLE: "chosen", "A": "b"}


def test_a_job_that_is_started_again_has_another_secret(code):
    fake, job = start(code, instance_count=2, environment={"A": "b"})
    attached = Estimator.attach(job.name, sagemaker_session=fake)
    assert dict(attached.spec.environment) == {"A": "b"}
    assert SECRET_VARIABLE not in attached.request().get("Environment", {})
