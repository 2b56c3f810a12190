"""Logs with lines of any length and any bytes: bounded memory, nothing that a terminal would obey, pipes unchanged."""

import hashlib
import os
import subprocess
import sys
from contextlib import closing

import pytest
from fakes.command_line import PROGRAM
from fakes.local_jobs import LocalJobs
from fakes.terminal import Terminal, in_terminal

from scriptmode import TrainingJob

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
LONG = 80 * MIB
#: Runs the command, and writes the most memory that it had, in KiB.
MEASURED = """
import sys
from scriptmode_cli import main
peak = sys.argv.pop(1)
try:
    main()
finally:
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    open(peak, "w").write(line.split()[1])
"""
#: What a terminal would obey, and what is to be left of it.
HOSTILE = {
    "clipboard": ("a\x1b]52;c;c2VjcmV0\x07b", "ab"), "title": ("a\x1b]0;owned\x1b\\b", "ab"),
    "8-bit title": ("a\x9d0;owned\x9cb", "a0;ownedb"), "device control": ("a\x1bP$qm\x1b\\b", "ab"),
    "erase screen": ("a\x1b[2Jb", "ab"), "cursor": ("a\x1b[1;1Hb\x1b[5Ac", "abc"),
    "report": ("a\x1b[6nb\x1b[cc", "abc"), "bell": ("a\x07b", "ab"), "right to left": ("a\u202eb", "ab"),
    "colour": ("a\x1b[31mb\x1b[0mc", "a\x1b[31mb\x1b[0mc"),
}  # fmt: skip
HOSTILE_BYTES = "\n".join(text for text, _ in HOSTILE.values()).encode()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    return LocalJobs(tmp_path_factory.mktemp("hostile logs"))


@pytest.fixture(scope="module")
def job(jobs):
    """A job that ended, whose log is the test's own."""
    return jobs.run("pass", metrics={"loss": "loss=([0-9.]+)"})["TrainingJobName"]


@pytest.fixture
def write(jobs, job):
    log = jobs.job_folder(job).log("algo-1")
    return log.write_bytes


def environment(jobs):
    return {**os.environ, "SCRIPTMODE_DATA_DIR": str(jobs.data_dir), "TERM": "xterm-256color"}


def measured(jobs, tmp_path, *words, **options):
    """Run a command; return the bytes' hash, their number, and the peak of its memory."""
    peak = tmp_path / "peak"
    command = [sys.executable, "-c", MEASURED, str(peak), *words]
    digest, count = hashlib.sha256(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(jobs), **options) as process:
        while chunk := process.stdout.read(MIB):
            digest.update(chunk)
            count += len(chunk)
        assert process.wait(600) == 0
    return digest.hexdigest(), count, int(peak.read_text()) / 1024


def write_long(jobs, job, *, before=b"", after=b""):
    with jobs.job_folder(job).log("algo-1").open("wb") as log:
        log.write(before)
        for _ in range(LONG // MIB):
            log.write(b"x" * MIB)
        log.write(after)


def test_a_line_of_80_mb_costs_little_memory_and_is_written_whole(jobs, job, write, tmp_path):
    write(b"short\n")
    at_start = measured(jobs, tmp_path, "logs", job)[2]
    write_long(jobs, job, before=b"first\n", after=b" loss=0.5\nlast\n")
    expected = hashlib.sha256(b"algo-1 | first\nalgo-1 | ")
    for _ in range(LONG // MIB):
        expected.update(b"x" * MIB)
    expected.update(b" loss=0.5\nalgo-1 | last\n")
    digest, _, peak = measured(jobs, tmp_path, "logs", job)
    assert digest == expected.hexdigest()
    assert peak < at_start + 64
    assert measured(jobs, tmp_path, "logs", job, "--tail", "2")[1] > LONG
    for words in (["logs", job, "--json"], ["logs", "-f", job, "--plain"], ["metrics", job]):
        assert measured(jobs, tmp_path, *words)[2] < at_start + 100
    assert [row["value"] for row in TrainingJob(job, jobs.platform).metrics()] == [0.5]


def test_a_line_of_80_mb_is_a_note_in_the_live_view(jobs, job, tmp_path):
    write_long(jobs, job, before=b"first\n", after=b"\nlast\n")
    peak = tmp_path / "peak"
    command = [sys.executable, "-c", MEASURED, str(peak), "logs", "-f", job]
    with closing(Terminal(100, 40, command, environment(jobs))) as terminal:
        terminal.wait()
        text = "".join(terminal.all_lines())
    assert "the end of a line of more than 1 MiB: scriptmode logs prints all of it" in text
    assert "algo-1 | first" in text
    assert "algo-1 | last" in text
    assert int(peak.read_text()) / 1024 < 220


def shown(jobs, *words):
    """Return what a command writes to a terminal, with its control sequences."""
    return in_terminal([PROGRAM, *words], environment(jobs))


@pytest.mark.parametrize("words", [["logs"], ["logs", "-f", "--plain"], ["logs", "--tail", "100"]], ids=" ".join)
def test_a_terminal_gets_text_and_colours_alone(jobs, job, write, words):
    write(HOSTILE_BYTES + b"\n10%\r20%\rok\r\n")
    written = shown(jobs, *words, job)
    lines = [line.partition("|\x1b[0m ")[2].replace("\x1b[0m", "") for line in written.split("\n") if "algo-1" in line]
    expected = [*(left.replace("\x1b[0m", "") for _, left in HOSTILE.values()), "ok"]
    assert lines[: len(expected)] == [f"{line}" for line in expected]
    left = written.replace("\x1b[31m", "").replace("\x1b[0m", "").replace("\x1b[36m", "")
    assert "\x1b" not in left
    assert "\x07" not in left


def test_a_pipe_gets_the_bytes_as_they_are_and_of_a_progress_bar_what_it_shows_last(jobs, job, write):
    write(HOSTILE_BYTES + b"\n10%\r20%\r\n")
    done = subprocess.run([PROGRAM, "logs", job], env=environment(jobs), capture_output=True, check=True)
    assert done.stdout == b"".join(b"algo-1 | " + line + b"\n" for line in (HOSTILE_BYTES + b"\n20%").split(b"\n"))


def test_a_reason_with_control_sequences_is_shown_without_them(jobs):
    script = r"""
    import sys
    raise ValueError("wrong \x1b]52;c;c2VjcmV0\x07\x1b]0;owned\x07\x1b[2Jvalue")
    """
    description = jobs.run(script)
    assert "value" in description["FailureReason"]
    for words in (["describe"], ["logs", "-f", "--plain"], ["logs", "-f"]):
        written = shown(jobs, *words, description["TrainingJobName"])
        assert "value" in written
        written += shown(jobs, *words, "no\x1b]0;owned\x07job")
        assert not [obeyed for obeyed in ("\x1b]", "\x1b[2J", "\x07") if obeyed in written]
