"""Lines in whatever pieces they come: the tail that is kept, and a log whose disk gets full and free again."""

import re
import resource
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, strategies as st

from scriptmode_runtime._processes.streams import Sink, Tail

BYTES = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"50%", b"\xff", "漢".encode(), b""])).map(b"".join)


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


def test_a_tail_begins_with_a_line_unless_the_line_is_longer():
    tail = Tail(20)
    for number in range(1000):
        tail.add(b"the secret is %d\nno\n" % number)
    assert tail.text() == "no\n"
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


#: The kernel's own refusal, at any byte: a file may not get larger, as on a disk that is full.
NOTICE = re.compile(
    r"scriptmode: (\d+) lines? \((\d+) bytes\) of this log could not be written and are missing here: .+"
)
FREE = resource.RLIM_INFINITY


@contextmanager
def largest_file(size):
    earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, earlier[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, earlier)


def logged(steps, room_at_end=None):
    """Write each step's text with room for the step's number of bytes more; return what the log has in the end."""
    with TemporaryDirectory() as folder, Path(folder, "log").open("ab", buffering=0) as file:
        sink = Sink(file.fileno())
        for text, room in steps:
            with largest_file(FREE if room is None else file.tell() + room):
                sink.write(text.encode())
            file.seek(0, 2)
        # A file that has any content has a block.
        with largest_file(FREE if room_at_end is None or not file.tell() else max(file.tell() + room_at_end, 4096)):
            sink.close()
        return Path(folder, "log").read_text()


def lines_of(number, count, width):
    return "".join(f"{number} {line} {'x' * width}\n" for line in range(count))


TEXTS = st.tuples(st.integers(0, 400), st.integers(0, 300))
STEPS = st.lists(st.tuples(TEXTS, st.one_of(st.none(), st.just(0), st.integers(0, 100_000))), max_size=12)
#: Where a text of whole lines is cut into two writes.
CUTS = st.integers(0, 200)


@given(STEPS, CUTS, st.sampled_from([None, 0, 50, 1000]))
def test_every_line_is_whole_or_counted_where_it_is_missing(steps, cut, room_at_end):
    steps = [(lines_of(number, *shape), room) for number, (shape, room) in enumerate(steps)]
    pieces = [(part, room) for text, room in steps for part in (text[:cut], text[cut:])]
    wanted = "".join(text for text, _ in steps).splitlines(keepends=True)
    log = logged(pieces, room_at_end)
    position = 0
    for line in log.splitlines(keepends=True):
        notice = NOTICE.fullmatch(line.rstrip("\n"))
        if notice:
            lost = wanted[position : position + int(notice[1])]
            assert len(lost) == int(notice[1])
            assert sum(map(len, lost)) == int(notice[2])
            position += len(lost)
        else:
            assert line == wanted[position], "spliced"
            position += 1
    assert position == len(wanted), "lost without a word"


def test_what_fits_in_memory_is_not_lost_at_all():
    text = lines_of(0, 300, 100)
    assert logged([(text, 1000), ("and on\n", None)]) == f"{text}and on\n"


def test_a_line_without_end_does_not_take_memory_without_end():
    log = logged([("x" * 10_000_000, 500), ("y" * 10_000_000, 0), ("the end\nafter\n", None)])
    first, notice, last = log.splitlines()
    assert set(first) == {"x"}
    assert len(first) < 70_000
    assert NOTICE.fullmatch(notice)[1] == "1"
    assert last == "after"
