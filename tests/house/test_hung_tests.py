"""A test that its time limit does not end is named while it runs, and fails; the tests after it run."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
CONFTEST = """
import hung_tests
hung_tests.CLEANUP_SECONDS = 1.0

def pytest_configure(config):
    config.pluginmanager.register(hung_tests.HungTests(config, named_seconds=1.0))
"""
TEST = """
import time

def test_that_catches_its_time_limit():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def test_after_it():
    pass
"""


def test_a_test_that_catches_its_time_limit_fails_by_name(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_one.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 3\n")
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", "--basetemp", "t", ".")
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    for name in list(environment):
        if name.startswith("PYTEST_"):
            del environment[name]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "s: test_one.py::test_that_catches_its_time_limit" in done.stdout
    assert "crashed while running 'test_one.py::test_that_catches_its_time_limit'" in done.stdout
    assert "in test_that_catches_its_time_limit" in done.stderr
