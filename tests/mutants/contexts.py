"""A plugin of pytest: has coverage note which test executes a line. Processes that tests start name theirs on their own."""

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Name the test, without its parameters, as the context of the lines executed from here on."""
    measured = coverage.Coverage.current()
    measured.switch_context(item.nodeid.partition("[")[0])
    try:
        return (yield)
    finally:
        measured.switch_context("")
