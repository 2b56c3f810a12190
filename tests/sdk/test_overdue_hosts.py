"""A host's agent ends hosts whose time is over, also while its events wait for a job's agent that is stopped."""

import os
import signal
import threading
from contextlib import suppress
from types import SimpleNamespace

from scriptmode.platforms.local.agent.host_agent import HostAgent
from scriptmode_runtime import contract


def test_hosts_are_ended_while_an_event_waits_for_its_reader(monkeypatch):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, bytes(65536)):
            pass
    os.set_blocking(writer, True)
    calls = []

    def kill():
        calls.append("kill")
        # The end of the reader ends the write.
        os.close(reader)

    monkeypatch.setattr(contract, "STOP_MARGIN", 0)
    agent = HostAgent.__new__(HostAgent)
    host = SimpleNamespace(terminate=lambda: calls.append("terminate"), kill=kill)
    vars(agent).update(
        _events=writer, _is_sending=False, _worked=float("inf"), _deadline=0.0, _overdue=set(),
        _running={"algo-1": host}, _job=SimpleNamespace(stop_grace=float("inf")),
    )  # fmt: skip
    before = signal.signal(signal.SIGALRM, agent._on_timer)
    grace_over = threading.Timer(0.5, lambda: setattr(agent._job, "stop_grace", 0))
    grace_over.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        # The timer's own event waits, and the next signals interrupt it.
        while "kill" not in calls:
            signal.pause()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        grace_over.cancel()
        os.close(writer)
    assert calls == ["terminate", "kill"]
