"""Following a job: when it is drawn, what is asked, and what ends it."""

import io
import re
import sys
import threading

import pytest
from fakes.platforms import RecordingPlatform
from fakes.processes import until
from fakes.sagemaker_jobs import started

from scriptmode import CredentialsError, JobNotFoundError
from scriptmode.clock import SYSTEM
from scriptmode.display.following import Following, roles
from scriptmode.display.terminal import TerminalView
from scriptmode.platforms import LogEvent
from scriptmode.testing import Life

REQUEST = {
    "TrainingJobName": "job-1",
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    "AlgorithmSpecification": {
        "MetricDefinitions": [{"Name": "broken", "Regex": "("}, {"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    },
}


class Screen(io.StringIO):
    """A terminal of 80 x 24, which it does not say, and how often it was written to."""

    encoding = "utf-8"

    def __init__(self):
        super().__init__()
        self.frames = []

    def isatty(self):
        return True

    def write(self, text):
        self.frames.append(text)
        return super().write(text)


class Job(RecordingPlatform):
    """A job whose log is what the test gives; it ends when that does."""

    def __init__(self, lines):
        super().__init__(["Completed"], CreationTime=SYSTEM.wall_time())
        self.created.append(REQUEST)
        self._lines = lines
        self.looks = 0

    def log_events(self, name, *, follow, on_description=None):
        on_description({**self.describe(name), "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training"})
        yield from (LogEvent("algo-1", line) for line in self._lines)

    def progress(self, name):
        self.looks += 1
        return ()


def followed(lines):
    screen = Screen()
    platform = Job(lines)
    Following("job-1", platform, TerminalView(screen)).run()
    return screen, platform


def test_a_log_of_many_lines_is_written_in_few_pieces_and_whole():
    screen, _ = followed(f"line {number}" for number in range(20_000))
    assert len(screen.frames) < 20
    assert re.findall(r"^(?:.*J)?\S*algo-1 \|\S* line (\d+)$", screen.getvalue(), re.MULTILINE) == [
        str(number) for number in range(20_000)
    ]


def test_an_expression_that_is_none_is_told_once_and_the_metrics_of_the_others_shown():
    screen, _ = followed(f"loss={number}" for number in range(20_000))
    assert screen.getvalue().count("scriptmode: metric 'broken': '(' is no regular expression") == 1
    assert "loss" in screen.frames[-1]
    assert "19,999" in screen.frames[-1]


def test_time_passes_in_a_view_of_a_job_that_says_nothing():
    screen = Screen()

    def lines():
        until(lambda: len(screen.frames) >= 3)
        yield "at last"

    Following("job-1", Job(lines()), TerminalView(screen)).run()
    assert "Training" in screen.frames[0]
    assert "at last" in screen.getvalue()


def test_what_the_program_says_meanwhile_scrolls_with_the_log(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", Screen())

    def lines():
        sys.stderr.write("still \x1b[2Jtrying\n")
        until(lambda: "still trying" in screen.getvalue())
        yield "up"

    before = sys.stderr
    Following("job-1", Job(lines()), TerminalView(screen)).run()
    assert "still trying\n" in screen.getvalue()
    assert sys.stderr is before
    assert before.getvalue() == ""


def test_what_the_program_says_into_a_file_stays_there(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def lines():
        sys.stderr.write("trouble\n")
        yield "up"

    screen = Screen()
    Following("job-1", Job(lines()), TerminalView(screen)).run()
    assert sys.stderr.getvalue() == "trouble\n"
    assert "trouble" not in screen.getvalue()


def test_a_terminal_that_goes_away_ends_the_following():
    class Gone(Screen):
        def write(self, text):
            raise BrokenPipeError

    def lines():
        while True:
            yield "line"

    with pytest.raises(BrokenPipeError):
        Following("job-1", Job(lines()), TerminalView(Gone())).run()


def test_a_log_that_cannot_be_read_on_ends_the_following_and_leaves_no_thread():
    def lines():
        yield "one"
        raise CredentialsError("expired")

    screen = Screen()
    with pytest.raises(CredentialsError):
        Following("job-1", Job(lines()), TerminalView(screen)).run()
    assert "one" in screen.getvalue()
    assert not [thread for thread in threading.enumerate() if "view of job-1" in thread.name]


def test_a_job_that_can_be_asked_nothing_but_its_log_is_followed():
    class Silent(Job):
        def progress(self, name):
            raise JobNotFoundError("gone")

        def describe(self, name):
            raise JobNotFoundError("gone")

        def log_events(self, name, *, follow, on_description=None):
            yield LogEvent("algo-1", "alone")

    screen = Screen()
    Following("job-1", Silent([]), TerminalView(screen)).run()
    assert "alone" in screen.getvalue()


def test_a_job_of_the_cloud_is_followed_by_the_services_own_clock():
    _, job = started(Life.completed(logs={"algo-1": [(100, "epoch 1")]}))
    screen = Screen()
    Following("job-1", job.platform, TerminalView(screen)).run()
    assert "epoch 1" in screen.getvalue()
    assert "  Starting 1 min" in screen.frames[-1]


def test_a_terminal_of_few_characters_is_written_to_in_those():
    class Ascii(Screen):
        encoding = "ascii"

        def write(self, text):
            text.encode("ascii")
            return super().write(text)

    screen = Ascii()
    Following("job-1", Job(["50% \u2588", "loss=1", "loss=2"]), TerminalView(screen)).run()
    assert "50% \\u2588" in screen.getvalue()
    assert "_@" in screen.frames[-1]


def test_roles_that_nobody_can_tell_are_none():
    assert roles({}) == {}
