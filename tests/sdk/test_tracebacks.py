"""Errors of the library in a traceback: the caller's own lines, and no frames of the library."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from scriptmode import Estimator, PlatformError, ScriptmodeError, TrainingJob
from scriptmode.core.text.tracebacks import hide_frames

CALL = """
from scriptmode import Estimator

def train():
    Estimator(entry_point="absent.py", instance_type="local_process").fit()

train()
"""


def frames(error):
    """Return the names of the functions of this library and of this test that a traceback has."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("options", [(), ("-X", "dev")], ids=["by default", "development mode"])
def test_a_program_shows_its_own_lines_and_all_frames_in_development_mode(tmp_path, options):
    (tmp_path / "call.py").write_text(CALL)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}
    argv = (sys.executable, *options, "call.py")
    shown = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stderr
    assert "in train\n" in shown
    assert ("estimator.py" in shown) == bool(options)
    assert shown.count("Traceback") == 1
    assert shown.splitlines()[-1].startswith("scriptmode.errors.SourceError: ")


@hide_frames(ScriptmodeError)
class Job:
    """A class whose members raise an error three calls deep, from a cause."""

    def run(self):
        self._deeper()

    @property
    def state(self):
        """The state."""
        return self._deeper()

    @staticmethod
    def list():
        Job()._deeper()

    def wait(self):
        self._press()

    def _press(self):
        raise KeyboardInterrupt

    def fail(self):
        raise PlatformError("wrong")

    def fail_while_handling(self):
        try:
            Path("/absent/file").stat()
        except OSError:
            self.fail()

    def _deeper(self):
        try:
            Path("/absent/file").stat()
        except OSError as error:
            raise PlatformError("not reached") from error


@pytest.mark.parametrize(
    "call", [lambda: Job().run(), lambda: Job().state, Job.list], ids=["method", "property", "function"]
)
def test_members_of_a_class_raise_without_their_frames_and_keep_the_cause(call):
    with pytest.raises(PlatformError) as caught:
        call()
    assert "_deeper" not in frames(caught.value)
    cause = caught.value.__cause__
    assert (type(cause), cause.__traceback__) == (FileNotFoundError, None)
    assert Job.state.__doc__ == "The state."


def test_ctrl_c_shows_no_frames_of_the_library():
    with pytest.raises(KeyboardInterrupt) as caught:
        Job().wait()
    assert "_press" not in frames(caught.value)


def test_an_unknown_argument_of_a_method_has_a_suggestion(tmp_path):
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="local_process")
    with pytest.raises(TypeError, match=r"^Estimator.fit has no argument 'wit'; did you mean 'wait'\?$"):
        estimator.fit(wit=False)
    with pytest.raises(TypeError, match=r"^TrainingJob.attach has no argument 'nam'; did you mean 'name'\?$"):
        TrainingJob.attach(nam="x")
    with pytest.raises(TypeError, match="takes from 1 to 6 positional arguments"):
        estimator.fit(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("call", "shown"), [(Job.fail, "KeyError: 'x'"), (Job.fail_while_handling, "")], ids=["the caller", "the library"]
)
def test_only_what_the_caller_was_handling_is_shown_as_well(call, shown):
    try:
        _ = {}["x"]
    except KeyError:
        with pytest.raises(PlatformError) as caught:
            call(Job())
    text = "".join(traceback.format_exception(PlatformError, caught.value, None))
    assert shown in text
    assert "FileNotFoundError" not in text
