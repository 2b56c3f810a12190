"""What hosts on Amazon SageMaker prove themselves to each other with."""

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import Estimator
from scriptmode.testing import Life
from scriptmode_runtime.contract import SECRET_VARIABLE

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


def test_a_secret_of_the_users_own_is_kept(code):
    _, job = start(code, instance_count=2, environment={SECRET_VARIABLE: "chosen", "A": "b"})
    assert job.describe()["Environment"] == {SECRET_VARIABLE: "chosen", "A": "b"}


def test_a_job_that_is_started_again_has_another_secret(code):
    fake, job = start(code, instance_count=2, environment={"A": "b"})
    attached = Estimator.attach(job.name, sagemaker_session=fake)
    assert dict(attached.spec.environment) == {"A": "b"}
    assert SECRET_VARIABLE not in attached.request().get("Environment", {})
