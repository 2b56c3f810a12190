"""The live view of real jobs in terminals of several sizes, as a terminal emulator shows it; progress bars in it."""

import os
import re
import signal
import sys
import time
from functools import partial

import pytest
from fakes.command_line import PROGRAM
from fakes.local_jobs import SLEEPS, LocalJobs, channel
from fakes.processes import until
from fakes.promptness import soon
from fakes.terminal import Terminal

pytestmark = pytest.mark.slow
SIZES = {"20x5": (20, 5), "40x12": (40, 12), "80x24": (80, 24), "200x60": (200, 60), "resized": (80, 24)}
LOSS = r"  loss +0\.\d+ [▁▂▃▄▅▆▇█]+ algo-1"  # the row of the metric from the second value on: the first is 1
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
    time.sleep(0.4)
for _ in range(150):
    say()
"""
FOLLOW = """
import sys
from scriptmode import TrainingJob
from scriptmode_local import LocalPlatform
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


def until_read(terminals, condition, seconds=600.0):
    def ask():
        for terminal in terminals:
            terminal.read()
        return condition()

    return until(ask, seconds, lambda: str([terminal.shown()[-12:] for terminal in terminals]))


class Session:
    """One job, followed in terminals of all sizes: their panels under way, and how they stand at the end."""

    def __init__(self, folder):
        self.jobs = LocalJobs(folder)
        (folder / "in").mkdir()
        (folder / "in" / "data").write_bytes(b"x" * 3_000_000)
        fields = {"channels": [channel("train", f"file://{folder}/in")], "metrics": {"loss": "loss=([0-9.]+)\\."}}
        self.name = self.jobs.start(SCRIPT, hosts=2, more={"Environment": {"END": str(folder / "end")}}, **fields)
        self.terminals = {key: Followed(*size, self.jobs, self.name) for key, size in SIZES.items()}
        self.end = folder / "end"

    def play(self):
        """Resize one of the terminals, and end the job."""
        terminals = self.terminals.values()
        #: Columns, rows, and the panel, which is not read while it is drawn.
        self.panels = []
        for key, size in SIZES.items():
            last = rf"{LOSS}\n.*algo-2.* · (line|bar) \d" if key == "200x60" else r"Training.*\n."
            drawn = partial(drawn_panel, self.terminals[key], re.compile(last, re.DOTALL))
            self.panels.append((*size, until_read(terminals, drawn)))
        resized = self.terminals["resized"]
        for columns, rows in ((40, 12), (30, 7), (100, 30)):
            resized.resize(columns, rows)
            until_read(terminals, lambda columns=columns: redrawn(resized, columns))
            assert sum(line.startswith("──") for line in resized.shown()) == 1
            self.panels.append((columns, rows, resized.panel()))
        self.end.touch()
        until_read(terminals, lambda: all(each.process.poll() is not None for each in terminals))
        until(lambda: not any(each.read() for each in terminals))

    def close(self):
        self.end.touch()
        for each in self.terminals.values():
            each.close()
        self.jobs.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    played = Session(tmp_path_factory.mktemp("live view"))
    try:
        played.play()
        yield played
    finally:
        played.close()


def drawn_panel(terminal, expected):
    panel = terminal.panel()
    return expected.search("\n".join(panel)) and panel


def redrawn(terminal, columns):
    return len(panel := terminal.panel()) >= 2 and len(panel[0]) == columns - 2


def test_the_panel_has_at_most_half_of_a_terminal_of_any_size(session):
    for columns, rows, panel in session.panels:
        assert "Training" in panel[0]
        assert 2 <= len(panel) <= rows // 2
        assert all(len(line) <= columns - 2 for line in panel)


def test_a_large_terminal_shows_hosts_data_metrics_and_history(session):
    panel = next("\n".join(panel) for columns, _, panel in session.panels if columns == 200)
    assert f"── {session.name} ──" in panel
    statuses = " \u203a ".join(rf"{name} [\d.]+(?: min \d+)? s" for name in ("Starting", "Downloading", "Training"))
    assert re.search(rf"^  {statuses}$", panel, re.MULTILINE)
    assert re.search(r"^  train staged 3.0 MB$", panel, re.MULTILINE)
    assert re.search(f"^{LOSS}$", panel, re.MULTILINE)
    assert re.search(r"^  algo-2.* · (line \d+: loss|bar \d+)", panel, re.MULTILINE)
    *_, history, data, loss, end = [line for line in session.terminals["200x60"].shown() if line]
    assert re.fullmatch(rf"  {statuses} \u203a Uploading \S+ s \u203a Completed", history)
    assert data == "  train staged 3.0 MB"
    assert loss.startswith("  loss 0.00")
    assert ": Completed, " in end


@pytest.mark.parametrize("size", ["80x24", "200x60"])
def test_every_line_of_the_log_is_there_once_and_in_order(session, size):
    said = session.terminals[size].all_lines()
    for host in ("algo-1", "algo-2"):
        numbers = [int(found[1]) for line in said if (found := re.match(rf"{host} \| line (\d+): loss=\S+\.$", line))]
        assert len(numbers) > 150
        assert numbers == list(range(len(numbers)))
        bars = [int(found[1]) for line in said if (found := re.fullmatch(rf"{host} \| bar (\d+)", line))]
        assert bars == numbers


@pytest.mark.parametrize("size", SIZES)
def test_the_panel_gives_way_to_one_summary_and_leaves_nothing_in_what_scrolled_away(session, size):
    terminal = session.terminals[size]
    lines = terminal.shown() if size == "resized" else terminal.all_lines()
    assert not [line for line in lines if line.startswith("──")]
    assert terminal.process.returncode == 0
    assert "".join(terminal.all_lines()).replace(" ", "").count(f"trainingjob{session.name}:Completed") == 1


@pytest.fixture
def watched(jobs):
    """A terminal with the panel of a job that sleeps, in a process group that a signal can stop."""
    name = jobs.start(SLEEPS)
    terminal = Followed(100, 30, jobs, name, preexec_fn=os.setpgrp)
    try:
        until_read([terminal], lambda: any("algo-1 | up" in line for line in terminal.shown()) and terminal.panel())
        yield terminal
    finally:
        terminal.close()


def test_a_signal_that_ends_the_program_leaves_the_cursor(watched):
    assert not watched.screen.cursor.hidden
    watched.process.send_signal(signal.SIGTERM)
    assert watched.wait() == -signal.SIGTERM
    assert not watched.screen.cursor.hidden


def test_a_job_that_is_deleted_while_it_is_followed_is_not_called_running(watched, jobs):
    jobs.platform.delete("job-1")
    watched.wait()
    said = " ".join("".join(f"{line:<100}" for line in watched.all_lines()).split())
    # Who follows may see the end of the agent before the deletion, which begins with it.
    assert "there is no training job 'job-1' any more" in said or "was killed or crashed in" in said
    assert "is still running" not in said
    assert not watched.panel()


def test_an_interrupt_takes_the_panel_away_and_says_how_to_come_back(watched, jobs):
    watched.process.send_signal(signal.SIGINT)
    assert watched.wait() == -signal.SIGINT
    said = [line for line in watched.all_lines() if line]
    assert not watched.panel()
    assert any("job job-1 is still running. Follow it again: scriptmode logs -f job-1" in line for line in said)
    # A call is for interactive Python, which a script and a shell are not.
    assert not any("TrainingJob.attach" in line or "During handling" in line for line in said)
    assert said[-1] == "KeyboardInterrupt"
    assert jobs.platform.describe("job-1").response["TrainingJobStatus"] == "InProgress"


#: Draws five states of a bar, and none more before the test has seen the fifth.
WAIT = """
import os, sys, time
sys.path.insert(0, {packages!r})

def drawn_five():
    with open({folder!r} + "/drawn", "w") as file:
        file.write(str(time.time()))
    while not os.path.exists({folder!r} + "/seen"):
        time.sleep(0.01)
"""
TQDM = """
import tqdm
for number in tqdm.tqdm(range(8), desc="train", mininterval=0):
    if number == 5:
        drawn_five()
"""
BAR, LAST = r"train: +62%\S*\s*\|.*\| 5/8 ", r"^algo-1 \| train: 100%.* 8/8 "


@pytest.fixture
def followed(jobs, tmp_path):
    """A job whose bar is in its fifth state for as long as the test likes, and the terminal that follows it."""
    wait = WAIT.format(folder=str(tmp_path), packages=str(next(p for p in sys.path if p.endswith("site-packages"))))
    name = jobs.start(wait + TQDM, metrics={"value": "([0-9]+)/8 "})
    variables = {"SCRIPTMODE_DATA_DIR": str(jobs.data_dir), "PYTHONIOENCODING": "utf-8"}
    terminal = Terminal(120, 30, [PROGRAM, "logs", "-f", name], variables)
    try:
        yield name, terminal, tmp_path
    finally:
        (tmp_path / "seen").touch()
        terminal.close()


def shows(terminal, pattern, *, screen=True):
    terminal.read()
    return [line for line in (terminal.shown() if screen else terminal.all_lines()) if re.search(pattern, line)]


@pytest.mark.prompt
def test_each_state_of_a_progress_bar_is_on_the_screen_within_a_second_and_the_log_has_one_line(followed):
    name, terminal, folder = followed
    until(lambda: shows(terminal, "^── Training"))
    drawn = until(lambda: (folder / "drawn").exists() and (folder / "drawn").read_text())
    (row,) = until(lambda: shows(terminal, f"^  algo-1 script .*· .*{BAR}"))
    soon(time.time() - float(drawn), 1.0)
    assert "\r" not in row
    # A metric's value is that of the present state.
    assert shows(terminal, r"^  value +5 ")
    assert not shows(terminal, r"^algo-1 \|.*5/8")
    (folder / "seen").touch()
    until(lambda: shows(terminal, LAST, screen=False))
    until(lambda: shows(terminal, f"^training job {name}: Completed", screen=False))
    assert len(shows(terminal, LAST, screen=False)) == 1
