"""Both ends of a `ResumableStream` over loopback, through a proxy that cuts, delays and drops."""

import hashlib
import os
import random
import select
import socket
import threading
import time
from contextlib import suppress

import pytest
from fakes.processes import until

from scriptmode.platforms.local.remote import resumable
from scriptmode.platforms.local.remote.resumable import LostError, ResumableStream

SECRET = b"secret"
MEGABYTES = 20


class Proxy:
    """Connects to ``target``; each connection ends after some bytes, and loses those of its last reads.

    That ends before the streams do: no protocol makes certain that its last message arrives.
    """

    def __init__(self, target, seed):
        self._random = random.Random(seed)
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.connections = self._relayed = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                with near, socket.create_connection(self._target) as far:
                    self._relay(near, far, self._random.choice([0, 60, 300_000, 2_000_003, 6_000_000, 12_000_000]))

    def _relay(self, near, far, left):
        while left > 0:
            ready, _, _ = select.select([near, far], [], [], 10)
            for source in ready:
                content = source.recv(70_001)
                if not content:
                    return
                self._relayed += len(content)
                if self._relayed > MEGABYTES << 20:
                    left = float("inf")
                # The last bytes are dropped, in the middle of a record.
                (far if source is near else near).sendall(content[: int(min(left, len(content)))])
                left -= len(content)
            if self._random.random() < 0.01:
                time.sleep(0.05)

    def close(self):
        self._listener.close()


class End:
    """One end in a thread, what is sent to it and what arrived at it."""

    def __init__(self, secret=SECRET):
        source, self._feed = os.pipe()
        self._drain, target = os.pipe()
        self.stream = ResumableStream(secret, source, target)
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
                self.close()

        threading.Thread(target=write, daemon=True).start()

    def close(self):
        """End what is sent."""
        os.close(self._feed)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.fixture
def connected(listener):
    """Two ends that are connected, and end with the test."""
    ends = End().run("listen", listener), End().run("connect", listener.getsockname())
    for end, other in (ends, ends[::-1]):
        end.send(b"hello", ends=False)
        until(lambda: other.received == b"hello")  # noqa: B023 - called here
    yield ends
    for end in ends:
        end.close()
    for end in ends:
        end.thread.join(600)


@pytest.mark.parametrize("seed", range(2))
def test_megabytes_arrive_in_both_directions_byte_for_byte_through_cuts_and_losses(listener, seed):
    contents = [random.Random(f"{seed} {side}").randbytes(MEGABYTES << 20) for side in "ab"]
    proxy = Proxy(listener.getsockname(), seed)
    ends = End().run("listen", listener), End().run("connect", proxy.address)
    for end, content in zip(ends, contents):
        end.send(content)
    for end, content in zip(ends, contents[::-1]):
        end.thread.join(600)
        assert not end.thread.is_alive(), f"{len(end.received)} of {len(content)} bytes after ten minutes"
        until(lambda: len(end.received) == len(content))  # noqa: B023 - called here
        assert hashlib.sha256(end.received).digest() == hashlib.sha256(content).digest()
    assert [end.error for end in ends] == [None, None]
    assert proxy.connections > 2
    proxy.close()


def test_an_end_that_does_not_read_for_long_blocks_neither_the_other_direction_nor_the_connection(
    listener, monkeypatch
):
    monkeypatch.setattr(resumable, "_DEAD_SECONDS", 3)
    monkeypatch.setattr(resumable, "_BEAT_SECONDS", 0.1)
    content = os.urandom(MEGABYTES << 20)
    drain, target = os.pipe()
    source, feed = os.pipe()
    near = End()
    near.stream = ResumableStream(SECRET, source, target)
    near.run("listen", listener)
    far = End().run("connect", listener.getsockname())
    far.send(content)
    time.sleep(5)
    os.write(feed, b"the other direction")
    until(lambda: far.received == b"the other direction")
    os.close(feed)
    with os.fdopen(drain, "rb") as file:
        assert file.read() == content
    for end in (near, far):
        end.thread.join(600)
        assert not end.thread.is_alive()
        assert end.error is None


def test_a_wrong_secret_is_refused_by_both_ends(listener, monkeypatch):
    monkeypatch.setattr(resumable, "LOST_SECONDS", 1.0)
    near, far = End().run("listen", listener), End(b"guessed").run("connect", listener.getsockname())
    near.send(b"not for others", ends=False)
    far.send(b"not from others", ends=False)
    far.thread.join(600)
    assert str(far.error) == "no connection for 1 s"
    assert not near.received
    assert not far.received
    End().run("connect", listener.getsockname()).send(b"from the host")
    until(lambda: near.received == b"from the host")
    near.close()
    near.thread.join(600)
    assert not near.thread.is_alive()


@pytest.mark.parametrize("sent", [b"", b"\0" * 20, os.urandom(32), os.urandom(72), os.urandom(1 << 20)], ids=len)
def test_connections_without_a_proof_neither_block_nor_end_the_stream(connected, listener, sent):
    near, far = connected
    attackers = []
    for number in range(40):
        attackers.append(attacker := socket.create_connection(listener.getsockname()))
        attacker.settimeout(0)
        with suppress(OSError):
            attacker.send(sent)
        before = time.monotonic()
        far.send(b"%d," % number, ends=False)
        until(lambda: near.received.endswith(b"%d," % number))  # noqa: B023 - called here
        assert time.monotonic() - before < 5
    assert near.received == b"hello" + b"".join(b"%d," % number for number in range(40))
    for each in attackers:
        each.close()
    assert near.thread.is_alive()


def test_an_end_without_a_connection_is_lost(connected, monkeypatch):
    monkeypatch.setattr(resumable, "LOST_SECONDS", 1.0)
    near, far = connected
    monkeypatch.setattr(far.stream, "_open", lambda _address: time.sleep(0.1))
    far.stream._socket.shutdown(socket.SHUT_RDWR)
    for end in (far, near):
        end.thread.join(600)
        assert str(end.error) == "no connection for 1 s"
