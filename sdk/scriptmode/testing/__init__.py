"""Tests of training code: `entry_point` runs a script as a host of a job would; `FakeSageMaker` stands for the service.

>>> run = entry_point("train.py", hyperparameters={"epochs": 1}, inputs={"train": "data"})
>>> assert run.exit_code == 0, run.log

`FakeSageMaker` is a fake of Amazon SageMaker in memory, with a clock that advances at once, and `server` is a running
``scriptmode serve``, whose jobs run on this machine.

>>> fake = FakeSageMaker()
>>> fake.expect(Life.failed("AlgorithmError: out of memory", logs={"algo-1": [(90, "loading"), (130, "Killed")]}))
>>> estimator = Estimator(..., sagemaker_session=fake)

Public are the names in ``__all__``:

* ``script_run``: `entry_point` and its result. ``host_layout``: `layouts`, the hosts as which it runs a script.
* ``fake_sagemaker``, ``fake_account``: `FakeSageMaker`, a session with clients, and the content of its AWS account.
* ``job_life``, ``timeline``: `Life`, what will happen to a job, and what does happen under its limits.
* ``fake_clock``: `FakeClock`. ``service_calls``: `Call`, `ServiceError` and injected faults.
* ``local_server``: `server`, and what it yields, `RunningServer`.
* ``engine_suite``: `EngineSuite`, the tests that every engine of hosts must pass.

What `entry_point` needs: ``in_process``, a run of a script in this process.

The services behind the fake:

* ``fake_client``: a boto3 client. ``botocore_models``, ``argument_limits``: validation of arguments.
* ``fake_training_jobs``, ``fake_job``: Amazon SageMaker. ``fake_s3``: Amazon S3. ``fake_iam``: IAM and STS.
* ``fake_cloudwatch_logs``, ``fake_cloudwatch``: CloudWatch Logs and CloudWatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode.testing.engine_suite import EngineSuite
    from scriptmode.testing.fake_clock import FakeClock
    from scriptmode.testing.fake_sagemaker import FakeSageMaker
    from scriptmode.testing.host_layout import Layout, layouts
    from scriptmode.testing.job_life import Life, Line, Phase, Point
    from scriptmode.testing.local_server import RunningServer, server
    from scriptmode.testing.script_run import EntryPointRun, entry_point
    from scriptmode.testing.service_calls import Call, ServiceError
else:
    # Each name is imported at its first use: a test of a script needs no fake of the service.
    _MODULES = {
        "engine_suite": ("EngineSuite",),
        "fake_clock": ("FakeClock",),
        "fake_sagemaker": ("FakeSageMaker",),
        "host_layout": ("Layout", "layouts"),
        "job_life": ("Life", "Line", "Phase", "Point"),
        "local_server": ("RunningServer", "server"),
        "script_run": ("EntryPointRun", "entry_point"),
        "service_calls": ("Call", "ServiceError"),
    }

    def __getattr__(name: str) -> Any:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "Call",
    "EngineSuite",
    "EntryPointRun",
    "FakeClock",
    "FakeSageMaker",
    "Layout",
    "Life",
    "Line",
    "Phase",
    "Point",
    "RunningServer",
    "ServiceError",
    "entry_point",
    "layouts",
    "server",
]
