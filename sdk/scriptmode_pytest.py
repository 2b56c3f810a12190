"""The pytest plugin: the fixtures ``entry_point`` and ``rehearse``.

pytest imports this module in every environment with scriptmode, before coverage starts. It is not part of the package
``scriptmode``, which is imported by the first test that uses a fixture.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from scriptmode import Estimator
    from scriptmode.rehearsal import Rehearsal
    from scriptmode.testing import EntryPointRun

# An assertion of the suite for engines that fails shows its values.
pytest.register_assert_rewrite("scriptmode.testing._engine_suite")


@pytest.fixture
def entry_point(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., EntryPointRun]:
    """Return ``scriptmode.testing.entry_point``, with paths relative to the test's file, and files in ``tmp_path``."""
    from scriptmode import testing

    def run(script: str | os.PathLike[str], **arguments: Any) -> EntryPointRun:
        # A wrong argument is shown at the test's own line.
        __tracebackhide__ = True
        before = Path.cwd()
        os.chdir(request.path.parent)
        try:
            return testing.entry_point(script, **{"directory": tmp_path, **arguments})
        finally:
            os.chdir(before)

    return run


@pytest.fixture
def rehearse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rehearsal]:
    """Return ``Estimator.rehearse`` with the estimator as first argument, which fails the test for a job not ready.

    The jobs are in ``tmp_path``.
    """
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "scriptmode"))

    def run(estimator: Estimator, inputs: object = None, faults: Any = None, *, step_metric: str) -> Rehearsal:
        __tracebackhide__ = True
        rehearsal = estimator.rehearse(inputs, faults, step_metric=step_metric)
        if not rehearsal.ok:
            text = str(rehearsal)
            # The first line is in pytest's summary.
            pytest.fail(f"{text.rpartition(chr(10))[2]}\n{text}", pytrace=False)
        return rehearsal

    return run
