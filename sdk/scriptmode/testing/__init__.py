"""A fake of Amazon SageMaker in memory, with a clock that advances at once, for tests of training code.

And `server`, a running ``scriptmode serve``, whose jobs run on this machine.

>>> fake = FakeSageMaker()
>>> fake.expect(Life.failed("AlgorithmError: out of memory", logs={"algo-1": [(90, "loading"), (130, "Killed")]}))
>>> estimator = Estimator(..., sagemaker_session=fake)

Public are the names in ``__all__``:

* ``fake_sagemaker``, ``fake_account``: `FakeSageMaker`, a session with clients, and the content of its AWS account.
* ``job_life``, ``timeline``: `Life`, what will happen to a job, and what does happen under its limits.
* ``fake_clock``: `FakeClock`. ``service_calls``: `Call`, `ServiceError` and injected faults.
* ``local_server``: `server`, and what it yields, `RunningServer`.

The services behind it:

* ``fake_client``: a boto3 client. ``botocore_models``, ``argument_limits``: validation of arguments.
* ``fake_training_jobs``, ``fake_job``: Amazon SageMaker. ``fake_s3``: Amazon S3. ``fake_iam``: IAM and STS.
* ``fake_cloudwatch_logs``, ``fake_cloudwatch``: CloudWatch Logs and CloudWatch.
"""

from scriptmode.testing.fake_clock import FakeClock
from scriptmode.testing.fake_sagemaker import FakeSageMaker
from scriptmode.testing.job_life import Life, Line, Phase, Point
from scriptmode.testing.local_server import RunningServer, server
from scriptmode.testing.service_calls import Call, ServiceError

__all__ = [
    "Call",
    "FakeClock",
    "FakeSageMaker",
    "Life",
    "Line",
    "Phase",
    "Point",
    "RunningServer",
    "ServiceError",
    "server",
]
