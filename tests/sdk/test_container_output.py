"""Both streams of a container in one log: no line inside another, nothing lost, progress at once."""

import struct
import threading
from contextlib import closing
from socket import socketpair

import pytest
from fakes.processes import until
from hypothesis import given
from hypothesis import strategies as st

from scriptmode.platforms.local.hosts.container_output import MergedStreams, copy_output

OUT, ERR = 1, 2


def merged(*frames):
    written = []
    streams = MergedStreams(written.append)
    for stream, data in frames:
        streams.add(stream, data)
    streams.release()
    return b"".join(written)


@pytest.mark.parametrize(
    ("frames", "log"),
    [
        ([(OUT, b"read"), (ERR, b"failed\n"), (OUT, b" fast\n")], b"read fast\nfailed\n"),
        ([(OUT, b"a"), (ERR, b"E"), (OUT, b"b\nc"), (ERR, b"F\n"), (OUT, b"d\n")], b"ab\nEF\ncd\n"),
        ([(OUT, b" 3 of 9\r"), (ERR, b"warning\n"), (OUT, b" 4 of 9\r")], b" 3 of 9\rwarning\n 4 of 9\r"),
        ([(OUT, b"no end"), (ERR, b"failed\n")], b"no end\nfailed\n"),
    ],
    ids=["a line of two writes", "both streams", "a progress bar", "no line end"],
)
def test_the_lines_of_a_containers_streams_are_whole(frames, log):
    assert merged(*frames) == log


@given(st.lists(st.tuples(st.sampled_from([OUT, ERR]), st.sampled_from([b"a", b"b\n", b"c\nd", b"\n", b"e\nf\n"]))))
def test_every_line_of_a_stream_is_in_the_log_in_its_order(frames):
    streams = {name: b"".join(data.replace(b"\n", b"%d\n" % name) for stream, data in frames if stream == name)
               for name in (OUT, ERR)}  # fmt: skip
    log = merged(*((stream, data.replace(b"\n", b"%d\n" % stream)) for stream, data in frames)).split(b"\n")
    for name, sent in streams.items():
        ended = sent.split(b"\n")[:-1]
        assert [line for line in log if line.endswith(b"%d" % name)] == ended


def test_a_line_without_an_end_delays_the_other_stream_for_a_moment_only():
    written = []
    ours, dockers = socketpair()
    with closing(ours), closing(dockers):
        copying = threading.Thread(target=copy_output, args=(ours, written.append))
        copying.start()
        for stream, data in ((OUT, b"Epoch 1 ..."), (ERR, b"a warning\n")):
            dockers.sendall(struct.pack(">BxxxL", stream, len(data)) + data)
        until(lambda: b"".join(written) == b"Epoch 1 ...\na warning\n")
        dockers.sendall(struct.pack(">BxxxL", OUT, 6) + b" done\n")
        dockers.shutdown(1)
        copying.join()
    assert b"".join(written) == b"Epoch 1 ...\na warning\n done\n"
