"""The pytest plugin: the fixture ``entry_point``.

pytest imports this module in every environment with scriptmode, before coverage starts. It is not part of the package
``scriptmode``, which is imported by the first test that uses the fixture.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

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
