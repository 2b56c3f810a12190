"""Tests of training code: `entry_point` runs a script as a host of a job would; `FakeSageMaker` stands for the service.

>>> run = entry_point("train.py", hyperparameters={"epochs": 1}, inputs={"train": "data"})
>>> assert run.exit_code == 0, run.log

`FakeSageMaker` is a fake of Amazon SageMaker in memory, with a clock that advances at once, and `server` is a running
``scriptmode serve``, whose jobs run on this machine.

>>> fake = FakeSageMaker()
>>> fake.expect(Life.failed("AlgorithmError: out of memory", logs={"algo-1": [(90, "loading"), (130, "Killed")]}))
>>> estimator = Estimator(..., sagemaker_session=fake)

Public are the names in ``__all__``.
"""

from __future__ import annotations

from scriptmode.testing.engine_suite import EngineSuite
from scriptmode.testing.fake_clock import FakeClock
from scriptmode.testing.fake_sagemaker import FakeSageMaker
from scriptmode.testing.host_layout import Layout, layouts
from scriptmode.testing.job_life import Life, Line, Phase, Point
from scriptmode.testing.local_server import RunningServer, server
from scriptmode.testing.script_run import EntryPointRun, entry_point
from scriptmode.testing.service_calls import Call, ServiceError

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
