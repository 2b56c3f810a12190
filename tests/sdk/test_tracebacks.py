"""Errors of the library in a traceback: the caller's own lines, and no frames of the library."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from scriptmode import Estimator, PlatformError, ScriptmodeError, SpecError, TrainingJob
from scriptmode.tracebacks import hide_frames

CALL = 'from scriptmode import Estimator\n\ndef train():\n    Estimator(entry_point="absent.py", instance_type="local_process").fit()\n\ntrain()\n'


def frames(error):
    """Return the names of the functions of this library and of this test that a traceback has."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def stderr_of(tmp_path, *options):
    (tmp_path / "call.py").write_text(CALL)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}
    argv = (sys.executable, *options, "call.py")
    return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stderr


def test_a_program_shows_its_own_lines_and_the_error(tmp_path):
    said = stderr_of(tmp_path)
    assert "in train\n" in said
    assert "estimator.py" not in said
    assert said.count("Traceback") == 1
    assert said.splitlines()[-1].startswith("scriptmode.errors.SourceError: ")


def test_development_mode_shows_all_frames(tmp_path):
    assert "estimator.py" in stderr_of(tmp_path, "-X", "dev")


def test_ipython_gets_the_callers_lines_and_the_text():
    with pytest.raises(SpecError) as caught:
        Estimator("train.py", instance_type="local_process", instance_count=0)
    lines = caught.value._render_traceback_()
    assert lines[0].startswith(f"File {__file__}, line ")
    assert lines[1].endswith('Estimator("train.py", instance_type="local_process", instance_count=0)')
    assert lines[2:] == ["", f"SpecError: {caught.value}"]


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

    def bug(self):
        raise KeyError("bug")

    def wait(self):
        self._press()

    def _press(self):
        raise KeyboardInterrupt

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


def test_a_bug_keeps_its_frames():
    with pytest.raises(KeyError) as caught:
        Job().bug()
    assert "bug" in frames(caught.value)


class Looking:
    """A class that raises an error while it handles another exception, or while its caller does."""

    def alone(self):
        raise ScriptmodeError("wrong")

    def handling(self):
        try:
            Path("/absent/file").stat()
        except OSError:
            raise ScriptmodeError("wrong")  # noqa: B904


def handle_and_look(look):
    try:
        return {}["the caller's"]
    except KeyError:
        return look()


@pytest.mark.parametrize(
    ("name", "shown"), [("alone", 'KeyError: "the caller\'s"'), ("handling", "")], ids=["the caller", "the library"]
)
def test_only_what_the_caller_was_handling_is_shown_as_well(name, shown):
    looking = hide_frames(ScriptmodeError)(Looking)()
    with pytest.raises(ScriptmodeError) as caught:
        handle_and_look(getattr(looking, name))
    said = "".join(traceback.format_exception(ScriptmodeError, caught.value, None))
    assert shown in said
    assert "FileNotFoundError" not in said
