"""Both ends of a `ProvenStream` over loopback."""

import os
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from fakes.processes import until

from scriptmode_local._remote import proven_stream
from scriptmode_local._remote.proven_stream import LostError, ProvenStream

SECRET = b"secret"
MEGABYTES = 20


class End:
    """One end in a thread, what is sent to it and what arrived at it."""

    def __init__(self, secret=SECRET):
        source, self._feed = os.pipe()
        self._drain, target = os.pipe()
        self.stream = ProvenStream(secret, source, target)
        self.error = None
        self.received = bytearray()
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, method, *arguments):
        """Run the stream in a thread; return this end."""

        def call():
            try:
                getattr(self.stream, method)(*arguments)
            except LostError as error:
                self.error = error

        self.thread = threading.Thread(target=call, daemon=True)
        self.thread.start()
        return self

    def _read(self):
        while content := os.read(self._drain, 1 << 16):
            self.received += content

    def send(self, content, *, ends=True):
        """Write in a thread, as both directions are full."""

        def write():
            left = memoryview(content)
            while left:
                left = left[os.write(self._feed, left[: 1 << 16]) :]
            if ends:
                os.close(self._feed)

        threading.Thread(target=write, daemon=True).start()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def test_megabytes_arrive_in_both_directions_byte_for_byte_and_both_ends_end(listener):
    contents = [os.urandom(MEGABYTES << 20) for _ in "ab"]
    ends = End().run("listen", listener), End().run("connect", listener.getsockname())
    for end, content in zip(ends, contents):
        end.send(content)
    for end, content in zip(ends, contents[::-1]):
        end.thread.join(600)
        assert not end.thread.is_alive()
        until(lambda: len(end.received) == len(content))  # noqa: B023 - called here
        assert end.received == content
        assert end.error is None


def test_a_wrong_secret_is_refused_by_both_ends(listener, monkeypatch):
    monkeypatch.setattr(proven_stream, "_CONNECT_SECONDS", 1.0)
    near, far = End().run("listen", listener), End(b"guessed").run("connect", listener.getsockname())
    near.send(b"not for others", ends=False)
    far.send(b"not from others", ends=False)
    far.thread.join(600)
    assert str(far.error) == "no connection for 1 s"
    assert not near.received
    assert not far.received
    End().run("connect", listener.getsockname()).send(b"from the host")
    until(lambda: near.received == b"from the host")


@pytest.mark.parametrize("sent", [b"", b"\0" * 20, os.urandom(32), os.urandom(72), os.urandom(1 << 20)], ids=len)
def test_connections_without_a_proof_do_not_keep_the_host_out(listener, sent):
    near = End().run("listen", listener)
    attackers = []
    for _ in range(40):
        attackers.append(attacker := socket.create_connection(listener.getsockname()))
        attacker.settimeout(0)
        with suppress(OSError):
            attacker.send(sent)
    begun = time.monotonic()
    End().run("connect", listener.getsockname()).send(b"from the host")
    until(lambda: near.received == b"from the host")
    assert time.monotonic() - begun < 5
    for attacker in attackers:
        attacker.close()


def test_a_connection_that_is_reset_is_lost(listener):
    near = End().run("listen", listener)
    with socket.create_connection(listener.getsockname()) as far:
        until(proven_stream._Unproven(far, SECRET, is_first=True).is_proven)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    near.thread.join(600)
    assert "reset" in str(near.error)
