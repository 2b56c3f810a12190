"""Following a job: when it is drawn, what ends it, and what else is written into its terminal."""

import io
import re
import sys
import threading

import pytest
from fakes.followed import Job, Last, Screen
from fakes.processes import until
from fakes.sagemaker_jobs import started
from pyte import HistoryScreen, Stream

from scriptmode import CredentialsError, HostActivity, JobNotFoundError, LogEvent, _display as display
from scriptmode._display.follower import Follower
from scriptmode._display.terminal_view import TerminalView
from scriptmode.testing import Life


def test_a_log_of_many_lines_is_written_in_few_pieces_and_searched_for_metrics_as_a_whole():
    screen = Screen()
    Follower("job-1", Job(f"loss={number}" for number in range(20_000)), TerminalView(screen)).run()
    assert len(screen.frames) < 20
    shown = re.findall(r"^(?:.*K)?\S*algo-1 \|\S* loss=(\d+)$", screen.getvalue(), re.MULTILINE)
    assert shown == [str(number) for number in range(20_000)]
    assert screen.getvalue().count("scriptmode: metric 'broken': the regular expression '(' is wrong") == 1
    assert "loss" in screen.frames[-1]
    assert "19,999" in screen.frames[-1]


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
    (loss,) = view.snapshot.metrics
    assert (loss.points, loss.last) == ((0.25,), 0.25)
    assert view.snapshot.hosts[0].line == "over loss=0.25"


class OddProgress(Job):
    def progress(self, name):
        raise ValueError("odd")


def expiring():
    yield "the last line"
    raise CredentialsError("expired")


@pytest.mark.parametrize(
    ("job", "error"),
    [(Job(expiring()), CredentialsError), (OddProgress(["the last line"]), ValueError)],
    ids=["of the log", "of the progress"],
)
def test_an_error_ends_the_following_after_the_last_lines_and_leaves_no_thread(job, error):
    screen = Screen()
    with pytest.raises(error):
        Follower("job-1", job, TerminalView(screen)).run()
    assert "the last line" in screen.getvalue()
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
    logs = {"algo-1": [(100, f"loss={number}") for number in range(100)]}
    fake, job = started(Life.completed(logs=logs), metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}])
    screen, view = Screen(), Last()
    Follower("job-1", job.platform, TerminalView(screen)).run()
    assert "loss=99\n" in screen.getvalue()
    assert "  Starting 1 min" in screen.frames[-1]
    # Of a job that has ended every line is searched for metrics, too.
    fake.clock.advance(10_000)
    Follower("job-1", job.platform, view).run()
    assert [each.points for each in view.snapshot.metrics] == [tuple(map(float, range(100)))]


def test_what_the_program_says_into_a_file_stays_there(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def lines():
        sys.stderr.write("trouble\n")
        yield "up"

    screen = Screen()
    Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert sys.stderr.getvalue() == "trouble\n"
    assert "trouble" not in screen.getvalue()


def test_a_line_that_is_written_in_pieces_is_shown_once_it_is_whole(monkeypatch):
    screen, before = Screen(), Screen()
    monkeypatch.setattr(sys, "stderr", before)
    kept = []

    def lines():
        kept.append(sys.stderr)
        sys.stderr.writelines(["still ", "\x1b[2Jtrying"])
        drawn = len(screen.frames)
        until(lambda: len(screen.frames) >= drawn + 2)
        assert "still" not in screen.getvalue()
        print(file=sys.stderr)
        until(lambda: "still trying\n" in screen.getvalue())
        sys.stderr.write("never ended")
        yield "up"

    Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert "never ended\n" in screen.getvalue()
    assert (sys.stderr, before.getvalue()) == (before, "")
    # A handler of `logging` keeps the stream that it was made with.
    kept[0].write("later\n")
    assert screen.getvalue().endswith("later\n")


def test_of_two_jobs_in_one_terminal_one_has_the_panel_and_both_their_lines(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    ended = threading.Event()

    def second():
        yield "second 0"
        yield from (f"second {number}" for number in range(1, 50) if ended.wait(20))

    def follow(name, lines):
        display.follow_job(name, Job(lines, name), display.TERMINAL)

    other = threading.Thread(target=follow, args=("job-2", second()))

    def first():
        until(lambda: "job-1" in screen.getvalue())
        other.start()
        until(lambda: "second 0\n" in screen.getvalue())
        yield "first"

    follow("job-1", first())
    assert sys.stdout is screen
    # The lines go on after the end of the view that took them, and the next job has the terminal to itself.
    ended.set()
    other.join()
    follow("job-3", ["third"])
    lines = seen(screen)
    assert [line for line in lines if "second" in line] == [f"algo-1 | second {number}" for number in range(50)]
    assert (lines.count("algo-1 | first"), lines.count("algo-1 | third")) == (1, 1)
    assert not [line for line in lines if line.startswith("\u2500\u2500")]
    assert "\u2500 job-2" not in screen.getvalue()
    # Which a view alone tells: of an expression that is none.
    assert screen.getvalue().count("scriptmode: metric 'broken'") == 2


def seen(screen):
    """What the terminal shows, and what scrolled out of it."""
    terminal = HistoryScreen(80, 24, history=1000)
    Stream(terminal).feed(screen.getvalue().replace("\n", "\r\n"))
    before = ["".join(line[column].data for column in range(80)).rstrip() for line in terminal.history.top]
    return [line for line in (*before, *(line.rstrip() for line in terminal.display)) if line]
