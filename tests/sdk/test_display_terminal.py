"""What else is written into the terminal while a job is followed in it: by the program, and of another job."""

import io
import sys
import threading

from fakes.followed import Job, Screen
from fakes.processes import until
from pyte import HistoryScreen, Stream

from scriptmode import display
from scriptmode.display.follower import Follower
from scriptmode.display.terminal_view import TerminalView


def test_what_the_program_says_meanwhile_scrolls_with_the_log(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", Screen())

    def lines():
        sys.stderr.write("still \x1b[2Jtrying\n")
        until(lambda: "still trying" in screen.getvalue())
        yield "up"

    before = sys.stderr
    Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert "still trying\n" in screen.getvalue()
    assert sys.stderr is before
    assert before.getvalue() == ""


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
        sys.stderr.writelines(["still ", "trying"])
        drawn = len(screen.frames)
        until(lambda: len(screen.frames) >= drawn + 2)
        assert "still" not in screen.getvalue()
        print(file=sys.stderr)
        until(lambda: "still trying\n" in screen.getvalue())
        sys.stderr.write("never ended")
        yield "up"

    Follower("job-1", Job(lines()), TerminalView(screen)).run()
    assert "never ended\n" in screen.getvalue()
    # A handler of `logging` keeps the stream that it was made with.
    kept[0].write("later\n")
    assert screen.getvalue().endswith("later\n")


def test_of_two_jobs_in_one_terminal_one_has_the_panel_and_both_their_lines(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)

    def first():
        until(lambda: "job-1" in screen.getvalue())
        other = threading.Thread(target=follow, args=("job-2", second()))
        other.start()
        until(lambda: "second 0\n" in screen.getvalue())
        yield "first"
        ended.set()
        other.join()

    def second():
        yield "second 0"
        yield from (f"second {number}" for number in range(1, 50) if ended.wait(20))

    def follow(name, lines):
        display.follow_job(name, Job(lines, name), display.TERMINAL)

    ended = threading.Event()
    follow("job-1", first())
    assert sys.stdout is screen
    lines = seen(screen)
    assert [line for line in lines if "second" in line] == [f"algo-1 | second {number}" for number in range(50)]
    assert lines.count("algo-1 | first") == 1
    assert not [line for line in lines if line.startswith("\u2500\u2500")]
    assert "\u2500 job-2" not in screen.getvalue()


def test_lines_of_a_job_go_on_after_the_end_of_the_view_that_took_them(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    ended = threading.Event()

    def second():
        yield "before"
        assert ended.wait(20)
        yield "after"

    other = threading.Thread(target=lambda: display.follow_job("job-2", Job(second(), "job-2"), display.TERMINAL))

    def first():
        other.start()
        until(lambda: "before\n" in screen.getvalue())
        yield "first"

    display.follow_job("job-1", Job(first()), display.TERMINAL)
    ended.set()
    other.join()
    assert seen(screen)[-1].endswith("| after")
    # The next one has the terminal to itself again.
    display.follow_job("job-3", Job(["third"], "job-3"), display.TERMINAL)
    assert "algo-1 | third" in seen(screen)
    # Which a view alone tells: of an expression that is none.
    assert screen.getvalue().count("scriptmode: metric 'broken'") == 2


def seen(screen):
    """What the terminal shows, and what scrolled out of it."""
    terminal = HistoryScreen(80, 24, history=1000)
    Stream(terminal).feed(screen.getvalue().replace("\n", "\r\n"))
    before = ["".join(line[column].data for column in range(80)).rstrip() for line in terminal.history.top]
    return [line for line in (*before, *(line.rstrip() for line in terminal.display)) if line]
