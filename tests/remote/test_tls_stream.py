"""Both ends of a TLS stream over loopback, and what a stranger in or beside the network does to them."""

import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from contextlib import closing, suppress

import pytest
from fakes.processes import until
from fakes.promptness import stretched

from scriptmode_local._remote import tls_stream
from scriptmode_local._remote.frames import wait_for
from scriptmode_local._remote.tls_stream import ListeningStream, StreamKeys, connect

KEYS, OTHERS = StreamKeys.create(), StreamKeys.create()
SECRET, CERTIFICATE = KEYS.host.split("\n", 1)
#: The certificate of the job with another's secret.
GUESSED = f"{OTHERS.host.split()[0]}\n{CERTIFICATE}"
MEGABYTES = 20
REFUSED = "scriptmode: a connection was refused: "
FRAME = b'{"kind": "message", "size": 0}\n'


class End:
    """One end in a thread, what is sent to it and what arrived at it."""

    def __init__(self, create, *arguments):
        self.error, self.is_asked_to_end = None, False
        self.received, self._unsent = bytearray(), deque()
        self.thread = threading.Thread(target=self._run, args=(create, arguments), daemon=True)
        self.thread.start()

    def _run(self, create, arguments):
        try:
            with closing(create(*arguments)) as stream:
                while (content := stream.read()) != b"" and not self.is_asked_to_end:
                    self.received += content or b""
                    if self._unsent:
                        self._unsent[0] = self._unsent[0][stream.write(self._unsent[0]) or 0 :]
                        if not self._unsent[0]:
                            self._unsent.popleft()
                    elif not content:
                        time.sleep(0.001)
        except OSError as error:
            self.error = error

    def send(self, content):
        """Send some bytes soon."""
        self._unsent.append(memoryview(content))

    def join(self):
        """Wait for the end of this end."""
        self.thread.join(600)
        assert not self.thread.is_alive()
        return self


class Between:
    """A program in the network between a listener and who connects to ``listener`` of this one."""

    def __init__(self, listener):
        self._behind = listener
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.seen = bytearray()
        #: By direction, what becomes of the next bytes.
        self.changes = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with self.listener:
            far, near = self.listener.accept()[0], socket.create_connection(self._behind.getsockname())
        for pair, direction in (((far, near), "to the agent"), ((near, far), "to the host")):
            threading.Thread(target=self._pass_on, args=(*pair, direction), daemon=True).start()

    def _pass_on(self, source, target, direction):
        with source, suppress(OSError):
            while content := source.recv(1 << 14):
                self.seen += content
                target.sendall(self.changes.pop(direction, bytes)(content))
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


def near_end(listener):
    return End(ListeningStream, KEYS, listener)


def far_end(listener, keys=KEYS.host):
    return End(connect, keys, listener.getsockname())


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def test_megabytes_arrive_in_both_directions_byte_for_byte_and_both_ends_end(listener):
    contents = [os.urandom(MEGABYTES << 20) for _ in "ab"]
    ends = near_end(listener), far_end(listener)
    ends[1].send(contents[1])
    until(lambda: ends[0].received)
    ends[0].send(contents[0])
    for end, content in zip(ends, contents[::-1]):
        until(lambda: len(end.received) == len(content))  # noqa: B023 - called here
        assert end.received == content
    ends[0].is_asked_to_end = True
    assert [end.join().error for end in ends] == [None, None]


def test_a_wrong_secret_is_refused(listener, monkeypatch, capfd):
    monkeypatch.setattr(tls_stream, "_CONNECT_SECONDS", 1.0)
    near, far = near_end(listener), far_end(listener, GUESSED)
    far.send(b"not from others")
    assert str(far.join().error) == "no connection for 1 s: the connection was closed"
    assert not near.received
    assert not far.received
    assert capfd.readouterr().err == f"{REFUSED}the other end does not know the job's secret\n"
    far_end(listener).send(b"from the host")
    until(lambda: near.received == b"from the host")


SENT = [b"", b"A\0\0", b"GET / HTTP/1.0\r\n\r\n", FRAME, SECRET.encode(), os.urandom(1 << 20)]


@pytest.mark.parametrize("sent", SENT, ids=len)
def test_connections_without_a_proof_do_not_keep_the_host_out(listener, sent, capfd):
    near = near_end(listener)
    attackers = []
    for _ in range(40):
        attackers.append(attacker := socket.create_connection(listener.getsockname()))
        attacker.settimeout(0)
        with suppress(OSError):
            attacker.send(sent)
    begun = time.monotonic()
    far_end(listener).send(b"from the host")
    until(lambda: near.received == b"from the host")
    assert time.monotonic() - begun < stretched(5)
    for attacker in attackers:
        attacker.close()
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith(REFUSED) for line in lines)
    assert len(lines) == len(set(lines)) <= 2


def test_a_connection_that_is_reset_is_lost(listener):
    near = near_end(listener)
    with proven_by_hand(listener) as far:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    near.join()


def tls_by_hand(listener, *, version="TLSv1_3", seconds=60):
    """A connection by the standard library alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.maximum_version = ssl.TLSVersion[version]
    context.load_verify_locations(cadata=CERTIFICATE)
    with socket.create_connection(listener.getsockname(), seconds) as connection:
        return context.wrap_socket(connection)


def proven_by_hand(listener, **options):
    """The same, which has sent the secret."""
    connection = tls_by_hand(listener, **options)
    connection.sendall(SECRET.encode())
    assert connection.recv(1) == b"\n"
    return connection


def is_refused(connection, content):
    """Send some bytes; return whether the other end does not take them any more."""
    try:
        return not connection.send(content)
    except OSError:
        return True


@pytest.mark.parametrize("megabytes", [1, 64], ids=["on its way", "more than there is room for"])
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_an_end_that_closes_before_it_has_read_everything_loses_nothing_that_it_sent(listener, version, megabytes):
    sent = []

    def fill_and_close():
        with closing(ListeningStream(KEYS, listener)) as near:
            until(near.read)
            while len(sent) < megabytes << 4 and (count := near.write(bytes(1 << 16))):
                sent.append(count)
            wait_for([near.fileno()], seconds=60)

    thread = threading.Thread(target=fill_and_close, daemon=True)
    thread.start()
    with proven_by_hand(listener, version=version) as far:
        far.sendall(b"begin")
        received = len(far.recv(1))
        far.sendall(bytes(40_000))
        # It waits for this end now, which has not read what was sent.
        thread.join(0.5)
        while content := far.recv(1 << 16):
            received += len(content)
    # A write that had no room for all of it may have sent a part.
    assert sum(sent) <= received < sum(sent) + (1 << 16)
    until(lambda: not thread.is_alive())


def half(content):
    return content[: len(content) // 2]


def cut(content):
    raise ConnectionResetError


CHANGES = {
    "a frame as it is": lambda content: FRAME + content,
    "a record": lambda content: b"\x17\x03\x03\x00\x20" + os.urandom(32) + content,
    "an alert of the end": lambda content: b"\x15\x03\x03\x00\x02\x01\x00" + content,
    "a replay": lambda content: content * 2,
    "another byte": lambda content: half(content) + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :],
    "swapped halves": lambda content: content[len(content) // 2 :] + half(content),
    "a gap": lambda content: content[:0],
    "half a record": half,
    "a cut": cut,
}  # fmt: skip


@pytest.mark.parametrize("direction", ["to the agent", "to the host"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_between_the_ends_ends_the_connection_before_anything_of_it_arrives(
    listener, change, direction
):
    between = Between(listener)
    near, far = near_end(listener), far_end(between.listener)
    content = os.urandom(1 << 20)
    for sender, receiver in ((far, near), (near, far)):
        sender.send(b"first")
        until(lambda: receiver.received == b"first")  # noqa: B023 - called here
    between.changes[direction] = CHANGES[change]
    for end in (near, far):
        end.send(content)
    for end in (near, far):
        assert "\n" not in str(end.join().error)
    reached = near if direction == "to the agent" else far
    # A cut is as the end of the connection: frames know theirs.
    assert reached.error or change == "a cut"
    assert b"first" + content == reached.received + content[len(reached.received) - len(b"first") :]
    assert len(reached.received) < len(content)
    assert SECRET.encode() not in between.seen
    assert content[:32] not in between.seen


def test_a_host_refuses_a_stranger_who_knows_even_the_secret(listener, monkeypatch):
    monkeypatch.setattr(tls_stream, "_CONNECT_SECONDS", 1.0)
    own = OTHERS.host.replace(OTHERS.host.split()[0], SECRET)
    stranger = End(ListeningStream, StreamKeys(OTHERS.relay.replace(OTHERS.host, own), own), listener)
    far = far_end(listener)
    far.send(b"not for others")
    assert "certificate verify failed" in str(far.join().error)
    assert not stranger.received
    far_end(listener, own).send(b"for the stranger")
    until(lambda: stranger.received == b"for the stranger")


def test_a_second_connection_with_the_secret_is_not_answered(listener):
    near, far = near_end(listener), far_end(listener)
    far.send(b"from the host")
    until(lambda: near.received == b"from the host")
    # Which is no TimeoutError before Python 3.10.
    with pytest.raises(socket.timeout):
        proven_by_hand(listener, seconds=1)
    far.send(b", still")
    until(lambda: near.received == b"from the host, still")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_host_that_sends_half_a_secret_or_a_byte_now_and_then_has_no_more_time_than_others(
    listener, monkeypatch, capfd, version
):
    monkeypatch.setattr(tls_stream, "_PROOF_SECONDS", 3.0)
    near = near_end(listener)
    begun = time.monotonic()
    with tls_by_hand(listener, version=version) as halves, socket.create_connection(listener.getsockname()) as drips:
        halves.send(SECRET[:32].encode())
        until(lambda: is_refused(drips, b"\x16"))
        with suppress(ConnectionResetError):
            assert not halves.recv(1)
    assert time.monotonic() - begun < 30
    far_end(listener).send(b"from the host")
    until(lambda: near.received == b"from the host")
    assert set(capfd.readouterr().err.splitlines()) >= {f"{REFUSED}no proof in 3 s"}


def test_hosts_have_no_private_key_and_each_job_has_keys_of_its_own():
    assert KEYS.relay.startswith(KEYS.host)
    assert "PRIVATE KEY" in KEYS.relay[len(KEYS.host) :]
    assert "PRIVATE KEY" not in KEYS.host
    assert not set(KEYS.relay.split()[:1]) & set(OTHERS.relay.split()[:1])
