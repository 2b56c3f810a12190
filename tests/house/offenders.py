"""How a house test fails: with every offender at once, a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def expect_none(offenders: Iterable[object], advice: str) -> None:
    """Fail with the offenders and what to do about them, unless there are none."""
    lines = sorted({str(offender) for offender in offenders})
    if lines:
        pytest.fail("\n".join((f"{len(lines)} offenders; {advice}", *lines)), pytrace=False)
