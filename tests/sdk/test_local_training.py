"""All or nothing, on a clock that the test turns."""

from dataclasses import dataclass, field

import pytest

from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._agent import supervision


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        assert seconds > 0
        self.now += seconds


@dataclass
class FakeHost:
    """Ends by itself at ``ends``, or ``obeys`` seconds after SIGTERM; ``code`` is its exit code then."""

    name: str
    clock: Clock
    ends: float = 1e9
    obeys: float = 0.0
    code: int = 0
    address: str = "127.0.0.1"
    events: list = field(default_factory=list)

    def poll(self):
        return self.code if self.clock.now >= self.ends else None

    def terminate(self):
        self.events.append(("TERM", self.clock.now))
        self.ends = min(self.ends, self.clock.now + self.obeys)

    def kill(self):
        self.events.append(("KILL", self.clock.now))
        self.ends = min(self.ends, self.clock.now)


BROKEN = supervision.Outcome.failed("ClientError", Failure("the input broke", host="algo-1"))


def ran(
    hosts, clock, *, max_runtime=100.0, stop_at=1e9, stop_grace=10.0, broken_at=1e9, describe_failure=None, **limits
):
    messages = []
    hooks = supervision.SupervisionHooks(
        wait=clock.wait,
        stop_requested=lambda: clock.now >= stop_at,
        on_stopping=messages.append,
        describe_failure=describe_failure or (lambda name, code: supervision.Outcome("Failed", f"{name} {code}")),
        find_failure=lambda: BROKEN if clock.now >= broken_at else None,
        clock=clock,
    )
    return supervision.supervise(hosts, max_runtime, stop_grace, hooks, **limits), messages


#: What a host says that lost its connection to another, and what is known of that one itself.
SAID = Failure("algo-2: its launcher was lost", host="algo-2", process="launcher", exit_code=1)
OWN = Failure("algo-2: the host's launcher was killed by SIGKILL", host="algo-2", process="launcher", exit_code=137)


@pytest.mark.parametrize(
    ("ends", "obeys", "code", "cause"),
    [(2.5, 0.0, -9, OWN), (1e9, 0.0, -15, SAID), (1e9, 0.0, 143, SAID), (1e9, 0.0, 0, SAID), (1e9, 1e9, -9, SAID)],
    ids=["its end is told late", "it obeys", "its shell obeys", "it ends well", "it does not end"],
)
def test_a_host_that_another_one_lost_tells_the_cause_if_it_ended_by_itself(ends, obeys, code, cause):
    clock = Clock()
    hosts = [FakeHost("algo-1", clock, ends=2.0, code=1), FakeHost("algo-2", clock, ends=ends, obeys=obeys, code=code)]
    failures = {"algo-1": SAID, "algo-2": OWN}
    outcome, _ = ran(hosts, clock, describe_failure=lambda name, _: supervision.Outcome("Failed", name, failures[name]))
    assert outcome.failure == cause
    assert clock.now <= 2.1 + supervision.WATCH_SECONDS + supervision.SHORT_GRACE_SECONDS


def test_a_host_that_ignores_sigterm_after_a_failure_is_killed_soon():
    clock = Clock()
    hosts = [FakeHost("algo-1", clock, obeys=1e9), FakeHost("algo-2", clock, ends=5.0, code=1)]
    ran(hosts, clock)
    assert [event for event, _ in hosts[0].events] == ["TERM", "KILL"]
    assert hosts[0].events[1][1] - hosts[0].events[0][1] == pytest.approx(supervision.SHORT_GRACE_SECONDS, abs=0.1)


@pytest.mark.parametrize(("code", "status"), [(2, "Failed"), (0, "Completed")])
def test_a_stop_does_not_change_how_hosts_have_ended(code, status):
    clock = Clock()
    assert ran([FakeHost("algo-1", clock, ends=5.0, code=code)], clock, stop_at=5.0)[0].secondary == status


@pytest.mark.parametrize("code", [0, 1], ids=["ended well", "failed"])
def test_a_broken_input_is_the_cause_whatever_it_made_of_the_hosts(code):
    clock = Clock()
    hosts = [FakeHost("algo-1", clock, ends=3.0, code=code), FakeHost("algo-2", clock)]
    outcome, _ = ran(hosts, clock, broken_at=3.0)
    assert outcome == BROKEN
    assert hosts[1].events[0][0] == "TERM"
    assert all(host.poll() is not None for host in hosts)


def test_an_input_that_breaks_after_the_last_host_ended_well_breaks_the_job():
    clock = Clock()
    outcome, _ = ran([FakeHost("algo-1", clock, ends=0.0)], clock, broken_at=0.0)
    assert outcome.secondary == "Failed"
