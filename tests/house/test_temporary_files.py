"""A run leaves nothing in the directory for temporary files; it fails if a test does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = """
import temporary_files
temporary_files.WAIT_SECONDS = 0.1

def pytest_configure(config):
    config.pluginmanager.register(temporary_files.TemporaryFiles(config))
"""
TEST = """
import os, tempfile

def test_something(tmp_path):
    (tmp_path / "file").touch()
    open(os.path.join(tempfile.gettempdir(), "__autograph_generated_file1.py"), "w").close()
    {}
"""


@pytest.mark.parametrize(
    ("statement", "code", "text"),
    [
        ("pass", 0, "1 passed"),
        ("tempfile.mkdtemp(prefix='scriptmode-left-')", 1, "left in the directory for temporary files: 1"),
        ("assert not tmp_path.exists()", 1, "the temporary files of this run are kept for a day"),
    ],
    ids=["nothing left", "a directory left", "a test failed"],
)
def test_a_run_leaves_nothing_unless_it_fails(tmp_path, statement, code, text):
    usual, tests = tmp_path / "usual", tmp_path / "tests"
    usual.mkdir()
    tests.mkdir()
    (tests / "conftest.py").write_text(CONFTEST)
    (tests / "test_one.py").write_text(TEST.format(statement))
    path = os.pathsep.join(map(str, (TESTS, TESTS.parent / "entrypoints")))
    environment = {**os.environ, "TMPDIR": str(usual), "PYTHONPATH": path}
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(tests))
    done = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, text in done.stdout) == (code, True), done.stdout
    assert [each.name[:3] for each in usual.iterdir()] == (["sm-"] if code else [])
