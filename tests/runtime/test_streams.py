"""What is put before lines, and what is kept of a stream, in whatever pieces it comes."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scriptmode_runtime.processes.streams import Prefix, Tail

TEXT = "[algo-1 ps \\1] "
BYTES = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"50%", b"\xff", "漢".encode(), b""])).map(b"".join)


@given(st.lists(BYTES))
def test_every_line_has_the_prefix_once_in_whatever_pieces_it_comes(pieces):
    prefix = Prefix(TEXT)
    shown = b"".join(prefix.before(piece) for piece in pieces if piece)
    stream = b"".join(pieces)
    begins = rb"(?:\A|(?<=\n)|(?<=\r)(?![\r\n]))(?=.)"
    assert shown == re.sub(begins, lambda _: TEXT.encode(), stream, flags=re.DOTALL)
    assert shown.replace(TEXT.encode(), b"") == stream


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        (b"one\ntwo\n", b"> one\n> two\n"),
        (b"one\r\ntwo\r\n", b"> one\r\n> two\r\n"),
        (b"\n\n", b"> \n> \n"),
        (b"1%\r2%\r3%\n", b"> 1%\r> 2%\r> 3%\n"),
        (b"\r1%\r2%", b"> \r> 1%\r> 2%"),
        (b"no end", b"> no end"),
    ],
)
def test_carriage_returns_begin_a_line_again_and_ends_of_lines_stay_whole(stream, shown):
    assert Prefix("> ").before(stream) == shown


def test_a_line_that_is_broken_off_goes_on_as_one_of_its_own():
    prefix = Prefix("> ")
    assert prefix.before(b"half") == b"> half"
    assert (prefix.end_line(), prefix.end_line()) == (b"\n", b"")
    assert prefix.before(b"other half\n") == b"> other half\n"
    assert prefix.end_line() == b""


@given(st.lists(BYTES), st.integers(1, 40))
def test_a_tail_is_the_streams_last_whole_lines(pieces, limit):
    tail = Tail(limit)
    for piece in pieces:
        tail.add(piece)
    stream = b"".join(pieces)
    text = tail.text()
    assert stream.decode("utf-8", "replace").endswith(text) or "\ufffd" in text
    if len(stream) <= limit:
        assert text == stream.decode("utf-8", "replace")


def test_a_tail_does_not_begin_in_the_middle_of_a_line():
    tail = Tail(20)
    for number in range(1000):
        tail.add(b"the secret is %d\nno\n" % number)
    assert tail.text() == "no\n"


def test_a_tail_of_one_endless_line_is_its_end():
    tail = Tail(20)
    for number in range(10_000):
        tail.add(b"step %d\r" % number)
    assert tail.text().endswith("step 9999\r")
    assert len(tail.text()) <= 20


def test_keeping_the_end_of_a_stream_takes_time_by_its_length_alone():
    def seconds(count):
        tail, chunk = Tail(), b"x" * 100
        began = time.process_time()
        for _ in range(count):
            tail.add(chunk)
        return time.process_time() - began

    seconds(1000)
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.01)
