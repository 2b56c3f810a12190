"""Following a job: when it is drawn, what is asked, and what ends it."""

import re
import threading

import pytest
from fakes.followed import Job, Last, Screen
from fakes.processes import until
from fakes.sagemaker_jobs import started

from scriptmode import CredentialsError, JobNotFoundError
from scriptmode.display.follower import Follower, find_roles
from scriptmode.display.terminal_view import TerminalView
from scriptmode.platforms.base import HostActivity, LogEvent
from scriptmode.request.parse import parse_request
from scriptmode.testing import Life


def followed(lines):
    screen = Screen()
    platform = Job(lines)
    Follower("job-1", platform, TerminalView(screen)).run()
    return screen, platform


def test_a_log_of_many_lines_is_written_in_few_pieces_and_whole():
    screen, _ = followed(f"line {number}" for number in range(20_000))
    assert len(screen.frames) < 20
    assert re.findall(r"^(?:.*K)?\S*algo-1 \|\S* line (\d+)$", screen.getvalue(), re.MULTILINE) == [
        str(number) for number in range(20_000)
    ]


def test_an_invalid_expression_is_reported_once_and_other_metrics_are_shown():
    screen, _ = followed(f"loss={number}" for number in range(20_000))
    assert screen.getvalue().count("scriptmode: metric 'broken': the regular expression '(' is wrong") == 1
    assert "loss" in screen.frames[-1]
    assert "19,999" in screen.frames[-1]


def test_time_passes_in_a_view_of_a_job_that_says_nothing():
    screen = Screen()

    def lines():
        until(lambda: len(screen.frames) >= 3)
        yield "at last"

    Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert all("Training" in frame for frame in screen.frames[1:3])
    assert "at last" in screen.getvalue()


def test_a_line_without_an_end_is_shown_while_it_is_written():
    class Writing(Job):
        def activity(self, name):
            return {"algo-1": HostActivity("\r1 of many\r2 of many loss=0.5")}

    def lines():
        until(lambda: any("2 of many loss=0.5" in frame for frame in screen.frames))
        yield "\r1 of many\r2 of many loss=0.5\rall of many loss=0.25"

    screen = Screen()
    view = Last()
    Follower("job-1", Writing(lines()), TerminalView(screen)).run()
    Follower("job-1", Writing(["over loss=0.25"]), view).run()
    assert "1 of many" not in screen.getvalue()
    assert screen.frames[-1].count(" all of many loss=0.25\n") == 1
    (loss,) = view.frame.snapshot.observed.metrics
    assert (loss.count, loss.last) == (1, 0.25)
    assert view.frame.snapshot.observed.hosts[0].line == "over loss=0.25"


def test_a_terminal_that_goes_away_ends_the_following():
    class Gone(Screen):
        def write(self, text):
            raise BrokenPipeError

    def lines():
        while True:
            yield "line"

    with pytest.raises(BrokenPipeError):
        Follower("job-1", Job(lines()), TerminalView(Gone())).run()


def test_a_view_that_breaks_ends_the_following_of_a_silent_job_too():
    class Broken(Last):
        def draw(self, frame):
            raise BrokenPipeError

    def lines():
        until(lambda: False)
        yield "never"

    with pytest.raises(BrokenPipeError):
        Follower("job-1", Job(lines()), Broken()).run()


def test_the_last_lines_are_shown_whatever_is_wrong_with_what_is_asked_beside():
    class Odd(Job):
        def progress(self, name):
            raise ValueError("odd")

    screen = Screen()
    with pytest.raises(ValueError, match="odd"):
        Follower("job-1", Odd(["the last line"]), TerminalView(screen)).run()
    assert "the last line" in screen.getvalue()


def test_a_log_that_cannot_be_read_on_ends_the_following_and_leaves_no_thread():
    def lines():
        yield "one"
        raise CredentialsError("expired")

    screen = Screen()
    with pytest.raises(CredentialsError):
        Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert "one" in screen.getvalue()
    assert not [thread for thread in threading.enumerate() if "view of job-1" in thread.name]


def test_a_job_whose_platform_answers_only_log_events_is_followed():
    class Silent(Job):
        def progress(self, name):
            raise JobNotFoundError("gone")

        def describe(self, name):
            raise JobNotFoundError("gone")

        def log_events(self, name, *, follow, on_description=None):
            yield LogEvent("algo-1", "alone")

    screen = Screen()
    Follower("job-1", Silent([]), TerminalView(screen)).run()
    assert "alone" in screen.getvalue()


def test_a_job_of_the_cloud_is_followed_by_the_services_own_clock():
    _, job = started(Life.completed(logs={"algo-1": [(100, "epoch 1")]}))
    screen = Screen()
    Follower("job-1", job.platform, TerminalView(screen)).run()
    assert "epoch 1" in screen.getvalue()
    assert "  Starting 1 min" in screen.frames[-1]


def test_every_line_of_a_job_that_had_ended_is_searched_for_metrics():
    logs = {"algo-1": [(100, f"loss={number}") for number in range(6000)]}
    life = Life.completed(logs=logs)
    fake, job = started(life, metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}])
    fake.clock.advance(10_000)
    view = Last()
    Follower("job-1", job.platform, view).run()
    assert [each.count for each in view.frame.snapshot.observed.metrics] == [6000]


def test_a_terminal_of_few_characters_is_written_to_in_those():
    class Ascii(Screen):
        encoding = "ascii"

        def write(self, text):
            text.encode("ascii")
            return super().write(text)

    screen = Ascii()
    Follower("job-1", Job(["50% \u2588", "loss=1", "loss=2"]), TerminalView(screen)).run()
    assert "50% \\u2588" in screen.getvalue()
    assert "_@" in screen.frames[-1]


def test_unknown_roles_are_none():
    assert find_roles(parse_request({})) == {}
    assert find_roles(parse_request({"HyperParameters": {"sagemaker_program": "x"}})) == {}
    two_strategies = {f"sagemaker_{name}_enabled": "true" for name in ("mpi", "parameter_server")}
    refused = {"sagemaker_program": "x", "sagemaker_submit_directory": "s3://bucket/x", **two_strategies}
    assert (
        find_roles(parse_request({"ResourceConfig": {"InstanceType": "local_process"}, "HyperParameters": refused}))
        == {}
    )
