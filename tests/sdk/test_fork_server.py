"""The fork server: a call runs the module's ``main`` in a process that owes nothing to the one that asked for it."""

import fcntl
import json
import os
import signal
from contextlib import closing
from itertools import count

import pytest
from fakes.processes import processes_naming, until

from scriptmode_local._system.fork_server import ForkServer
from scriptmode_runtime._processes import proc

MAIN = """
import json, os, time
def main(arguments):
    streams = [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2, arguments[1])]
    facts = {"pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0), "streams": streams}
    print(json.dumps({**facts, "environment": dict(os.environ)}), flush=True)
    time.sleep(0 if "ENDS" in os.environ else 600)
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call ``main`` in a fork with a held lock and a log, which are new files; return what it logs."""
    (tmp_path / "forked_main.py").write_text(MAIN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    numbers = count()

    def call_once(seconds=60):
        files = [tmp_path / f"{kind}-{next(numbers)}" for kind in ("lock", "log")]
        with files[0].open("w") as lock, files[1].open("a") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert server.call(str(tmp_path), lock.fileno(), log.fileno(), seconds)
        return {**until(lambda: json.loads(files[1].read_text() or "0")), "server": server._process.pid}

    with closing(ForkServer("forked_main")) as server:
        server.start()
        yield call_once
    for pid in processes_naming(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


def test_a_fork_has_its_own_session_the_descriptors_and_the_environment_of_the_moment(call, tmp_path, monkeypatch):
    monkeypatch.setenv("SINCE_THEN", "line\nof \udcff")
    monkeypatch.delenv("HOME")
    facts = call()
    assert facts["server"] not in (facts["parent"], facts["session"])
    assert facts["environment"] == dict(os.environ)
    assert facts["streams"] == [os.devnull, f"{tmp_path}/log-1", f"{tmp_path}/log-1", f"{tmp_path}/lock-0"]


def test_a_fork_lives_on_with_the_lock_when_its_server_is_killed_and_the_next_call_has_another(call, tmp_path):
    first = call()
    with (tmp_path / "lock-0").open("r+") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.kill(first["server"], signal.SIGKILL)
    until(lambda: not proc.processes()[first["server"]].running)
    assert call()["server"] != first["server"]
    assert proc.processes()[first["pid"]].running


def test_a_server_that_hangs_is_replaced_and_a_fork_that_ended_is_reaped(call, monkeypatch):
    monkeypatch.setenv("ENDS", "1")
    facts = call()
    until(lambda: facts["pid"] not in proc.processes())
    os.kill(facts["server"], signal.SIGSTOP)
    with pytest.raises(OSError, match="timed out"):
        call(seconds=0.2)
    assert call()


def test_a_module_that_cannot_be_imported_has_no_fork(tmp_path):
    with closing(ForkServer("scriptmode.absent")) as server, (tmp_path / "log").open("a") as log:
        assert not server.call(str(tmp_path), log.fileno(), log.fileno(), 60)
