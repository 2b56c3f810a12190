"""Host logs as lines, and ports that no two jobs share."""

import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scriptmode.platforms.local.store import logs
from scriptmode.platforms.local.store.logs import LogReader, append_line, unfinished_line
from scriptmode.platforms.local.system import ports as ports_module
from scriptmode.platforms.local.system.durable import sync_file
from scriptmode.platforms.local.system.ports import LOWEST, ROLES, Ports


@pytest.fixture
def reader(tmp_path):
    reader = LogReader(tmp_path / "log")
    yield reader
    reader.close()


def taken(reader, *, final=False):
    """The lines that came, none of which is in pieces."""
    found = list(reader.lines(final=final))
    assert not any(continues for _, continues in found)
    return [text for text, _ in found]


def test_a_line_is_what_a_line_feed_ends(tmp_path, reader):
    assert taken(reader) == []
    with (tmp_path / "log").open("ab", buffering=0) as log:
        log.write(b"one\ntw")
        assert taken(reader) == ["one"]
        assert taken(reader) == []
        log.write("o\n10%\r20%\rdone\n\nü".encode()[:-1])
        assert taken(reader) == ["two", "10%\r20%\rdone", ""]
        log.write("ü".encode()[1:] + b"\xff")
        assert taken(reader, final=True) == ["ü\ufffd"]
    assert taken(reader, final=True) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_lines_are_the_same_however_they_arrive(tmp_path, parts, chunk):
    log = tmp_path / "log"
    log.write_bytes(b"")
    reader = LogReader(log)
    original, logs.CHUNK = logs.CHUNK, chunk
    try:
        lines = list(reader.lines(final=False))
        with log.open("ab", buffering=0) as file:
            for part in parts:
                file.write(part)
                lines += reader.lines(final=False)
        lines += reader.lines(final=True)
    finally:
        logs.CHUNK = original
        reader.close()
    whole = b"".join(parts).decode("utf-8", "replace")
    found = "".join(text + ("" if continues else "\n") for text, continues in lines)
    assert found == whole + ("" if whole.endswith("\n") or not whole else "\n")
    assert all(len(text) <= 2 * chunk + 3 for text, _ in lines)


def test_a_long_line_comes_in_pieces_that_joined_are_the_line(tmp_path, reader):
    size = 3 * logs.CHUNK + 1_000
    line = ("ü" * size).encode() + b"\xff"
    (tmp_path / "log").write_bytes(b"first\n" + line + b"\nlast\n")
    found = list(reader.lines(final=True))
    assert (found[0], found[-1]) == (("first", False), ("last", False))
    pieces = found[1:-1]
    assert [continues for _, continues in pieces] == [True] * (len(pieces) - 1) + [False]
    assert "".join(text for text, _ in pieces) == line.decode("utf-8", "replace")
    assert len(pieces) > 3


def test_a_long_line_is_cut_where_a_progress_bar_begins_again(tmp_path, reader):
    line = "".join(f"\r{number:06} loss={number}.5" for number in range(100_000))
    (tmp_path / "log").write_text(line)
    pieces = list(reader.lines(final=True))
    assert "".join(text for text, _ in pieces) == line
    assert len(pieces) > 1
    assert all(text.startswith("\r") for text, _ in pieces)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""),
        (b"one\ntwo\n", ""),
        (b"one\n\r10%\r20%", "\r10%\r20%"),
        (b"one\n" + "é 20%".encode()[1:], "\ufffd 20%"),
        (b"a" * 100_000, "a" * 8192),
    ],
    ids=["empty", "ended", "progress bar", "half a character", "long"],
)
def test_an_unfinished_line_is_what_follows_the_last_line_feed(tmp_path, content, line):
    (tmp_path / "log").write_bytes(content)
    assert unfinished_line(tmp_path / "log") == line


def test_of_a_long_unfinished_line_the_last_drawings_are_read(tmp_path):
    (tmp_path / "log").write_bytes(b"one\n" + b"".join(b"\r%06d of many" % number for number in range(100_000)))
    line = unfinished_line(tmp_path / "log")
    assert len(line) <= 8192
    assert line.split("\r")[0] == ""
    assert line.endswith("\r099999 of many")


def test_without_a_log_there_is_no_unfinished_line(tmp_path):
    assert unfinished_line(tmp_path / "log") == ""
    os.mkfifo(tmp_path / "log")
    assert unfinished_line(tmp_path / "log") == ""


def test_every_host_has_a_port_for_every_role_and_none_is_shared(tmp_path):
    one, two = Ports(tmp_path), Ports(tmp_path)
    reserved = [*one.reserve(["algo-1", "algo-2"]).values(), *two.reserve(["algo-1", "algo-2"]).values()]
    assert all(tuple(host) == ROLES for host in reserved)
    numbers = [number for host in reserved for number in host.values()]
    assert len(set(numbers)) == len(numbers) == 4 * len(ROLES)
    assert all(LOWEST <= number < 32768 for number in numbers)
    one.release()
    two.release()


def test_ports_are_given_back_and_taken_ones_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(ports_module, "_ephemeral_start", lambda: LOWEST + 2 * len(ROLES))
    ports = Ports(tmp_path)
    first = ports.reserve(["algo-1"])["algo-1"]["worker"]
    ports.release()
    with socket.create_server(("127.0.0.1", first + 3)):
        other = ports.reserve(["algo-1"])["algo-1"]["worker"]
        assert other != first
        with pytest.raises(Exception, match="algo-2: no block of . free ports between 10000"):
            ports.reserve(["algo-2"])
    ports.release()


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "said\n"), ("whole\n", "whole\nsaid\n"), ("of a killed proc", "of a killed proc\nsaid\n")],
    ids=["empty", "whole", "half a line"],
)
def test_an_appended_line_is_never_part_of_another(tmp_path, before, after):
    log = tmp_path / "algo-1.log"
    log.write_text(before)
    append_line(log, "said")
    assert log.read_text() == after


@pytest.mark.parametrize("act", [lambda log: append_line(log, "said"), sync_file], ids=["append", "sync"])
def test_a_fifo_in_a_logs_place_is_refused_at_once(tmp_path, act):
    log = tmp_path / "algo-1.log"
    os.mkfifo(log)
    with pytest.raises(OSError, match=r"it is a FIFO|Invalid argument"):
        act(log)
