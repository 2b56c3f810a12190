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

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode.testing._engine_suite import EngineSuite
    from scriptmode.testing._fake_account import Call, ServiceError
    from scriptmode.testing._fake_clock import FakeClock
    from scriptmode.testing._fake_sagemaker import FakeSageMaker
    from scriptmode.testing._host_layout import Layout, layouts
    from scriptmode.testing._job_life import Life, Line, Phase, Point
    from scriptmode.testing._local_server import RunningServer, server
    from scriptmode.testing._script_run import EntryPointRun, entry_point
else:
    # Each name is imported at its first use: a test of a script needs no fake of the service.
    _MODULES = {
        "engine_suite": ("EngineSuite",),
        "fake_account": ("Call", "ServiceError"),
        "fake_clock": ("FakeClock",),
        "fake_sagemaker": ("FakeSageMaker",),
        "host_layout": ("Layout", "layouts"),
        "job_life": ("Life", "Line", "Phase", "Point"),
        "local_server": ("RunningServer", "server"),
        "script_run": ("EntryPointRun", "entry_point"),
    }

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"{__name__}._{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "Call", "EngineSuite", "EntryPointRun", "FakeClock", "FakeSageMaker", "Layout", "Life", "Line", "Phase", "Point",
    "RunningServer", "ServiceError", "entry_point", "layouts", "server",
]  # fmt: skip
