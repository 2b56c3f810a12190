"""How hosts agree, with a clock that only the test moves."""

import selectors
import socket
import time

import pytest
from fakes.host_folders import free_ports

from scriptmode_runtime._peers.base import Times
from scriptmode_runtime._peers.lead import Lead
from scriptmode_runtime._peers.member import Member
from scriptmode_runtime._values import cluster
from scriptmode_runtime._values.errors import ClusterError
from scriptmode_runtime._values.failure import HostFailure

TIMES = Times(join=100.0, silence=30.0, heartbeat=5.0)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Job:
    """Hosts of one job in one process, on one selector."""

    def __init__(self, count, secrets=(), on_wait=None):
        self.clock = Clock()
        self.selector = selectors.DefaultSelector()
        (self.port,) = free_ports(1)
        names = [f"algo-{number + 1}" for number in range(count)]
        places = {name: {"address": "127.0.0.1", "ports": {"peers": self.port}} for name in names}
        document = {"hosts": places, "single_machine": True}
        self.hosts = []
        for number, name in enumerate(names):
            here = cluster.parse(document, names, name, "/opt/ml")
            secret = dict(enumerate(secrets)).get(number, b"secret")
            side = Member if number else Lead
            told = on_wait or (lambda _text: None)
            self.hosts.append(side(here, secret, self.selector, self.clock, TIMES, told))

    def start(self, *numbers):
        for number in numbers or range(len(self.hosts)):
            self.hosts[number].start()
        self.running = [self.hosts[number] for number in numbers or range(len(self.hosts))]
        self.settle()

    def settle(self, reached=None):
        """Handle events until ``reached``, or until there are no more for a moment."""
        deadline = time.monotonic() + (5 if reached else 0.1)
        while time.monotonic() < deadline and not (reached and reached()):
            for key, _ in self.selector.select(0.02):
                if key.fileobj in self.selector.get_map():
                    key.data()
            for host in self.running:
                host.tick()
        assert reached is None or reached()

    def pass_time(self, seconds, step=1.0):
        for _ in range(int(seconds / step)):
            self.clock.now += step
            self.settle_once()

    def settle_once(self):
        for host in self.running:
            host.tick()
        for key, _ in self.selector.select(0.005):
            if key.fileobj in self.selector.get_map():
                key.data()


@pytest.fixture
def job():
    jobs = []

    def make(*args, **kwargs):
        jobs.append(Job(*args, **kwargs))
        return jobs[-1]

    yield make
    for one in jobs:
        for host in getattr(one, "running", []):
            host.close()
        one.selector.close()


def failed(host, code=3):
    return HostFailure(host, "worker", code, f"{host}, worker: exit code {code}")


def test_an_event_is_reached_once_every_host_is_there(job):
    three = job(3)
    three.start()
    three.hosts[0].announce("trainers_ended")
    three.hosts[2].announce("trainers_ended")
    three.settle()
    assert not any(host.reached("trainers_ended") for host in three.hosts)
    three.hosts[1].announce("trainers_ended")
    three.settle(lambda: all(host.reached("trainers_ended") for host in three.hosts))
    assert three.hosts[1].finished


def test_a_message_sent_before_joining_arrives(job):
    two = job(2)
    two.hosts[1].start()
    two.hosts[1].fail(failed("algo-2"))
    two.running = [two.hosts[1]]
    two.settle()
    assert two.hosts[1].failure is None
    two.hosts[0].start()
    two.running = two.hosts
    two.clock.now += 1
    two.settle(lambda: two.hosts[0].failure == two.hosts[1].failure == failed("algo-2"))


def test_a_host_that_joins_a_failed_job_receives_the_failure(job):
    two = job(2)
    two.start(0)
    two.hosts[0].fail(failed("algo-1"))
    two.hosts[1].start()
    two.running = two.hosts
    two.settle(lambda: two.hosts[1].failure == failed("algo-1"))


@pytest.mark.parametrize("silent", [0, 1], ids=["lead", "member"])
def test_hosts_that_beat_live_for_ever_and_a_silent_one_is_lost_after_its_deadline(job, silent):
    two = job(2)
    two.start()
    two.settle(lambda: two.hosts[0]._listener is None)
    two.pass_time(300, step=5.0)
    # All are suspended, and go on.
    two.pass_time(100, step=100.0)
    two.pass_time(10, step=5.0)
    two.running = [two.hosts[1 - silent]]
    two.pass_time(29)
    assert [host.failure for host in two.hosts] == [None, None]
    two.pass_time(2)
    assert two.running[0].failure.host == f"algo-{silent + 1}"
    two.running = two.hosts


@pytest.mark.parametrize("waits", [0, 1], ids=["lead", "member"])
def test_missing_hosts_are_logged_at_intervals(job, waits):
    said = []
    two = job(2, on_wait=said.append)
    two.start(waits)
    two.pass_time(75)
    assert [text.partition(",")[2] for text in said] == [" for 90 s more at most", " for 30 s more at most"]
    assert said[0].startswith(("algo-1 waits for algo-2", "algo-2 waits for algo-1 at 127.0.0.1:")[waits])


@pytest.mark.parametrize(
    ("waits", "message"),
    [(0, "algo-2: did not come up in 100 s; look at its own log"), (1, "algo-1: could not be reached at 127.0.0.1:")],
    ids=["lead", "member"],
)
def test_a_host_that_never_comes_is_named(job, waits, message):
    two = job(2)
    two.start(waits)
    two.pass_time(120, step=10.0)
    assert two.hosts[waits].failure.message.startswith(message)


@pytest.mark.parametrize("secrets", [(b"secret", b"other"), (b"other", b"secret")])
def test_a_peer_without_the_secret_is_not_authenticated(job, secrets):
    two = job(2, secrets=secrets)
    two.start()
    two.hosts[1].fail(failed("algo-2"))
    two.settle(lambda: two.hosts[1].failure is not None)
    assert two.hosts[0].failure is None
    assert two.hosts[0].disconnected
    assert "another secret" in two.hosts[1].failure.message


def test_a_graceful_stop_lets_the_hosts_still_hear_of_each_other(job):
    two = job(2)
    two.start()
    two.hosts[0].fail(failed("algo-1")._replace(graceful=True))
    two.settle(lambda: two.hosts[1].failure is not None)
    for host in two.hosts:
        host.announce("trainers_ended")
    two.settle(lambda: all(host.reached("trainers_ended") for host in two.hosts))


def test_a_connection_that_is_lost_at_once_is_tried_again(job):
    two = job(2)
    two.start(1)
    member = two.hosts[1]
    member._endpoint = socket.socket()
    two.selector.register(member._endpoint, selectors.EVENT_WRITE, member._connected)
    member._connected()
    two.hosts[0].start()
    two.running = two.hosts
    two.clock.now += 1
    two.settle(lambda: not two.hosts[0].disconnected)


def test_a_port_that_is_held_is_named(job):
    one, other = job(2), job(2)
    one.start(0)
    other.hosts[0]._cluster = one.hosts[0]._cluster
    with pytest.raises(ClusterError, match="peers"):
        other.hosts[0].start()
