"""The agent's log: whatever becomes of it, the agent goes on."""

import os
import traceback

import pytest

from scriptmode.platforms.local.agent import log_stream


def write_a_traceback(stream):
    try:
        int("the reason")
    except ValueError:
        traceback.print_exc(file=stream)


def test_what_is_written_is_in_the_log_at_once(tmp_path):
    with (tmp_path / "log").open("ab") as file:
        stream = log_stream.open_log_stream(file.fileno())
        stream.write("a line 😀\n")
        write_a_traceback(stream)
        text = (tmp_path / "log").read_text("utf-8")
    assert text.startswith("a line 😀\nTraceback")
    assert text.endswith("'the reason'\n")


@pytest.mark.parametrize("place", ["/dev/full", "closed"])
def test_a_log_that_cannot_be_written_raises_nothing(tmp_path, place):
    descriptor = os.open("/dev/full" if place == "/dev/full" else tmp_path / "log", os.O_WRONLY | os.O_CREAT, 0o600)
    stream = log_stream.open_log_stream(descriptor)
    if place == "closed":
        os.close(descriptor)
    write_a_traceback(stream)
    stream.flush()
    if place != "closed":
        os.close(descriptor)


def test_a_forked_child_writes_its_own_lines(tmp_path):
    with (tmp_path / "log").open("ab") as file:
        stream = log_stream.open_log_stream(file.fileno())
        stream.write("parent\n")
        child = os.fork()
        if child == 0:
            stream.write("child\n")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "log").read_text() == "parent\nchild\n"
