"""The programs beside the notebooks refuse what cannot be, in one line and before anything starts."""

import subprocess
import sys

import pytest
from notebooks.execution import NOTEBOOKS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "code", "told"),
    [
        (
            "compare.py",
            ["--workers", "1,two"],
            2,
            "argument --workers: '1,two' is not a list of whole numbers of at least 1",
        ),
        ("compare.py", ["--widths", "0"], 2, "argument --widths: '0' is not a list of whole numbers"),
        (
            "compare.py",
            ["--accuracy", "70"],
            2,
            "argument --accuracy: '70' is not a number from 0 to 1; write for example 0.7",
        ),
        (
            "compare.py",
            ["--data", "nowhere"],
            2,
            "'nowhere' has no directory 'train' and no directory 'eval'; name one",
        ),
        ("demo.py", ["--data", "."], 2, "argument --data: '.' has no directory 'train'"),
        ("demo.py", ["--epochs", "-1"], 2, "argument --epochs: '-1' is not a whole number of at least 1"),
        (
            "demo.py",
            ["--tensorflow", "1.0"],
            1,
            "demo.py: framework_version is '1.0', but hosts that are processes run",
        ),
        (
            "demo.py",
            ["--tensorflow", "1.0", "--instance-type", "local"],
            1,
            "demo.py: there is no image with TensorFlow '1.0'",
        ),
    ],
)
def test_an_argument_that_cannot_be_is_told_without_a_traceback(program, words, code, told, tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    done = subprocess.run(
        [sys.executable, str(NOTEBOOKS / program), *words],
        check=False, capture_output=True, text=True, timeout=50, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
