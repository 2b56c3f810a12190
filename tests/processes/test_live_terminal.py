"""The live view of a real job in terminals of several sizes, as a terminal emulator shows it."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import until
from fakes.terminal import Terminal

from scriptmode_runtime.processes import system

pytestmark = pytest.mark.slow
SIZES = {"20x5": (20, 5), "40x12": (40, 12), "80x24": (80, 24), "200x60": (200, 60), "resized": (80, 24)}
#: Every host logs what would clear the screen and move the cursor, until it is told to end.
SCRIPT = """
import itertools, os, time
lines = itertools.count()
def say():
    number = next(lines)
    print(f"\\x1b[2J\\x1b[H\\x1b[5A\\x1b[31mline {number}:\\x1b[0m loss={1 / (1 + number):.4f}.", flush=True)
    print(f"  0%\\r 50%\\rbar {number}\\x1b[K", flush=True)
while not os.path.exists(os.environ["END"]):
    say()
    time.sleep(0.04)
for _ in range(150):
    say()
"""
FOLLOW = """
import sys
from scriptmode import TrainingJob
from scriptmode.platforms.local import LocalPlatform
TrainingJob(sys.argv[1], LocalPlatform()).follow()
"""


class Followed(Terminal):
    """A terminal in which a job is followed."""

    def __init__(self, columns, rows, jobs, name, **options):
        variables = {"SCRIPTMODE_DATA_DIR": str(jobs.data_dir), "PYTHONIOENCODING": "utf-8"}
        super().__init__(columns, rows, [sys.executable, "-c", FOLLOW, name], variables, **options)

    def panel(self):
        """The rows from the panel's head on."""
        lines = self.shown()
        heads = [index for index, line in enumerate(lines) if line.startswith("──")]
        return [line for line in lines[heads[0] :] if line] if heads else []


def until_read(terminals, condition, seconds=30.0):
    def ask():
        for terminal in terminals:
            terminal.read()
        return condition()

    return until(ask, seconds)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """One job, followed in terminals of all sizes; what they showed under way, and how they stand at the end."""
    folder = tmp_path_factory.mktemp("live view")
    jobs = LocalJobs(folder)
    (folder / "in").mkdir()
    (folder / "in" / "data").write_bytes(b"x" * 3_000_000)
    request = jobs.request(SCRIPT, hosts=2, channels=[channel("train", f"file://{folder}/in")])
    request["Environment"] = {"END": str(folder / "end")}
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "loss", "Regex": "loss=([0-9.]+)\\."},
    ]
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    terminals = {key: Followed(*size, jobs, name) for key, size in SIZES.items()}
    try:
        until_read(terminals.values(), lambda: all("Training" in "".join(each.panel()) for each in terminals.values()))
        under_way = {key: each.panel() for key, each in terminals.items()}
        resized = terminals["resized"]
        panels = []
        for columns, rows in ((40, 12), (30, 7), (100, 30)):
            resized.resize(columns, rows)
            until_read(terminals.values(), lambda columns=columns: redrawn(resized, columns))
            panels.append((columns, rows, resized.panel(), heads(resized)))
        (folder / "end").touch()
        for each in terminals.values():
            until_read(terminals.values(), lambda each=each: each.process.poll() is not None)
        until(lambda: not any(each.read() for each in terminals.values()))
        yield jobs, name, terminals, under_way, panels
    finally:
        (folder / "end").touch()
        for each in terminals.values():
            each.close()
        jobs.close()


def heads(terminal):
    return sum(line.startswith("──") for line in terminal.shown())


def redrawn(terminal, columns):
    panel = terminal.panel()
    return panel and len(panel[0]) == columns - 2 and len(panel) >= 2


@pytest.mark.parametrize("size", SIZES)
def test_the_panel_stays_below_the_log_and_leaves_it_half_the_screen(session, size):
    _, _, _, under_way, _ = session
    columns, rows = SIZES[size]
    panel = under_way[size]
    assert "Training" in panel[0]
    assert 2 <= len(panel) <= rows // 2
    assert all(len(line) <= columns - 2 for line in panel)


def test_a_large_terminal_shows_hosts_data_metrics_and_history(session):
    _, name, _, under_way, _ = session
    said = "\n".join(under_way["200x60"])
    assert f"── {name} ──" in said
    assert re.search(r"^  Starting \S+ s \u203a Downloading \S+ s \u203a Training \S+ s$", said, re.MULTILINE)
    assert re.search(r"^  train staged 3.0 MB$", said, re.MULTILINE)
    assert re.search(r"^  loss +0\.\d+ [▁▂▃▄▅▆▇█]+ algo-1$", said, re.MULTILINE)
    assert re.search(r"^  algo-2.* · (line \d+: loss|bar \d+)", said, re.MULTILINE)


def test_a_terminal_that_changes_its_size_has_one_panel_of_its_own_size(session):
    _, _, _, _, panels = session
    for columns, rows, panel, count in panels:
        assert count == 1
        assert len(panel) <= rows // 2
        assert all(len(line) <= columns - 2 for line in panel)


@pytest.mark.parametrize("size", ["80x24", "200x60"])
def test_every_line_of_the_log_is_there_once_and_in_order(session, size):
    _, _, terminals, _, _ = session
    said = terminals[size].all_lines()
    for host in ("algo-1", "algo-2"):
        numbers = [int(found[1]) for line in said if (found := re.match(rf"{host} \| line (\d+): loss=\S+\.$", line))]
        assert len(numbers) > 150
        assert numbers == list(range(len(numbers)))
        bars = [int(found[1]) for line in said if (found := re.fullmatch(rf"{host} \| bar (\d+)", line))]
        assert bars == numbers


@pytest.mark.parametrize("size", SIZES)
def test_the_panel_gives_way_to_one_summary(session, size):
    _, name, terminals, _, _ = session
    said = "".join(terminals[size].all_lines())
    assert "──" not in "".join(terminals[size].shown())
    assert terminals[size].process.returncode == 0
    assert said.replace(" ", "").count(f"trainingjob{name}:Completed") == 1


def test_the_panel_leaves_nothing_in_what_scrolled_away(session):
    _, _, terminals, _, _ = session
    for size in ("20x5", "40x12", "80x24", "200x60"):
        assert not [line for line in terminals[size].all_lines() if line.startswith("──")], size


def test_the_summary_has_history_data_and_metrics(session):
    _, _, terminals, _, _ = session
    *_, history, data, loss, end = [line for line in terminals["200x60"].shown() if line]
    assert re.fullmatch(
        r"  Starting \S+ s \u203a Downloading \S+ s \u203a Training \S+ s \u203a Uploading \S+ s \u203a Completed",
        history,
    )
    assert data == "  train staged 3.0 MB"
    assert loss.startswith("  loss 0.00")
    assert ": Completed, " in end


def test_colours_are_kept(session):
    _, _, terminals, _, _ = session
    screen = terminals["200x60"].screen
    row = next(index for index, line in enumerate(screen.display) if "| line " in line)
    column = screen.display[row].index("line ")
    assert screen.buffer[row][column].fg == "red"


@pytest.fixture
def watched(jobs):
    """A terminal with the panel of a job that sleeps, in a process group that a signal can stop."""
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)")
    terminal = Followed(100, 30, jobs, name, preexec_fn=os.setpgrp)
    try:
        until_read([terminal], lambda: any("algo-1 | up" in line for line in terminal.shown()) and terminal.panel())
        yield terminal
    finally:
        terminal.close()


def test_while_the_panel_is_shown_the_cursor_is_hidden_and_the_status_is_bold(watched):
    assert watched.screen.cursor.hidden
    head = next(index for index, line in enumerate(watched.shown()) if line.startswith("──"))
    status = watched.screen.buffer[head][3]
    assert (status.data, status.bold, status.fg) == ("T", True, "cyan")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_the_program_leaves_the_cursor_and_no_panel(watched, number):
    watched.process.send_signal(number)
    until_read([watched], lambda: watched.process.poll() is not None)
    until(lambda: not watched.read())
    assert watched.process.returncode == -number
    assert not watched.screen.cursor.hidden
    assert not watched.panel()


def test_a_program_that_is_stopped_leaves_the_cursor_and_shows_the_panel_again(watched):
    watched.process.send_signal(signal.SIGTSTP)
    until(lambda: system.state(watched.process.pid) == "T")
    until_read([watched], lambda: not watched.screen.cursor.hidden)
    assert not watched.panel()
    # What the shell writes meanwhile stays.
    watched.feed(b"$ fg\r\n")
    watched.process.send_signal(signal.SIGCONT)
    until_read([watched], lambda: watched.screen.cursor.hidden and watched.panel())
    time.sleep(1)
    watched.read()
    lines = [line for line in watched.shown() if line]
    assert lines[lines.index("$ fg") + 1].startswith("── Training ")
    assert sum(line.startswith("──") for line in lines) == 1


def test_each_drawing_is_one_update_of_the_screen(watched):
    watched.raw.clear()
    until_read([watched], lambda: watched.raw.count(b"\x1b[?2026l") > 2)
    drawings = bytes(watched.raw).split(b"\x1b[?2026l")[:-1]
    assert all(drawing.startswith(b"\x1b[?2026h") for drawing in drawings)


def test_the_last_lines_are_shown_above_the_panel_and_metrics_are_found_in_all(jobs):
    script = """
        import time
        for number in range(100):
            print(f"loss={number / 100}", flush=True)
        time.sleep(600)
    """
    request = jobs.request(script)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    jobs.until_line(name, "loss=0.99")
    command = [str(Path(sys.executable).with_name("scriptmode")), "logs", "-f", name, "--tail", "2"]
    terminal = Terminal(100, 30, command, {"SCRIPTMODE_DATA_DIR": str(jobs.data_dir), "PYTHONIOENCODING": "utf-8"})
    try:
        until_read([terminal], lambda: any(re.match(r"  loss +0\.99 ▁", line) for line in terminal.shown()))
        lines = [line for line in terminal.shown() if line]
        assert lines[:2] == ["algo-1 | loss=0.98", "algo-1 | loss=0.99"]
        assert lines[2].startswith("── Training ")
    finally:
        terminal.close()


def test_a_job_that_is_deleted_while_it_is_followed_is_not_called_running(watched, jobs):
    jobs.platform.delete("job-1")
    until_read([watched], lambda: watched.process.poll() is not None)
    until(lambda: not watched.read())
    said = " ".join("".join(f"{line:<100}" for line in watched.all_lines()).split())
    assert "there is no training job 'job-1' any more" in said
    assert "is still running" not in said
    assert not watched.panel()


def test_an_interrupt_takes_the_panel_away_and_says_how_to_come_back(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)")
    terminal = Followed(100, 30, jobs, name)
    try:
        until_read([terminal], lambda: any("algo-1 | up" in line for line in terminal.shown()) and terminal.panel())
        terminal.process.send_signal(signal.SIGINT)
        until_read([terminal], lambda: terminal.process.poll() is not None)
        until(lambda: not terminal.read())
    finally:
        terminal.close()
    said = terminal.all_lines()
    assert not terminal.panel()
    assert any(
        f"Training job {name} is still running. Follow it again: scriptmode logs -f {name}" in line for line in said
    )
    # A call is for interactive Python, which a script and a shell are not.
    assert not any("TrainingJob.attach" in line for line in said)
    assert [line for line in said if line][-1] == "KeyboardInterrupt"
    assert not any("During handling" in line for line in said)
    assert jobs.platform.describe(name)["TrainingJobStatus"] == "InProgress"
