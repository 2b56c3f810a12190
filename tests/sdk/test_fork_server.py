"""The fork server: a call runs the module's ``main`` in a process that owes nothing to the one that asked for it."""

import fcntl
import json
import os
import signal
from contextlib import closing

import pytest
from fakes.processes import processes_naming, until

from scriptmode_local._system.fork_server import ForkServer
from scriptmode_runtime._processes import proc

MAIN = """
import json, os, pathlib, time
def main(arguments):
    folder, lock = pathlib.Path(arguments[0]), int(arguments[1])
    print("logged", flush=True)
    facts = {"pid": os.getpid(), "session": os.getsid(0), "input": os.readlink("/proc/self/fd/0"),
             "lock": os.readlink(f"/proc/self/fd/{lock}"), "environment": dict(os.environ), "parent": os.getppid()}
    (folder / "draft").write_text(json.dumps(facts))
    (folder / "draft").rename(folder / "facts")
    while "ENDS" not in os.environ:
        time.sleep(0.05)
    return 0
"""


class Calls:
    """A fork server and its calls, each with a folder of its own."""

    def __init__(self, folder, module="forked_main"):
        self.folder = folder
        self.server = ForkServer(module)
        self.folders = []

    def call(self, seconds=60):
        folder = self.folder / str(len(self.folders))
        folder.mkdir()
        self.folders.append(folder)
        with (folder / "lock").open("w") as lock, (folder / "log").open("a") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self.server.call(str(folder), lock.fileno(), log.fileno(), seconds)

    def facts(self):
        """What the fork of the last call tells."""
        file = self.folders[-1] / "facts"
        return until(lambda: file.exists() and json.loads(file.read_text()))

    def close(self):
        self.server.close()
        for pid in processes_naming(str(self.folder)):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def calls(tmp_path, monkeypatch):
    (tmp_path / "forked_main.py").write_text(MAIN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with closing(Calls(tmp_path)) as made:
        yield made


def test_a_fork_has_its_own_session_the_lock_the_log_and_the_environment_of_the_moment(calls, monkeypatch):
    calls.server.start()
    monkeypatch.setenv("SINCE_THEN", "line\nof \udcff")
    monkeypatch.delenv("HOME")
    assert calls.call()
    facts, folder = calls.facts(), calls.folders[-1]
    assert facts["session"] == facts["pid"]
    assert facts["environment"] == dict(os.environ)
    assert (facts["input"], facts["lock"]) == (os.devnull, str(folder / "lock"))
    assert (folder / "log").read_text() == "logged\n"
    with (folder / "lock").open("w") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_forks_live_on_when_their_fork_server_is_killed_and_the_next_call_has_another(calls):
    assert calls.call()
    first = calls.facts()
    os.kill(first["parent"], signal.SIGKILL)
    until(lambda: not proc.processes()[first["parent"]].running)
    assert calls.call()
    assert calls.facts()["parent"] != first["parent"]
    assert proc.processes()[first["pid"]].running


def test_a_fork_that_ended_is_reaped(calls, monkeypatch):
    monkeypatch.setenv("ENDS", "1")
    assert calls.call()
    pid = calls.facts()["pid"]
    until(lambda: pid not in proc.processes())


def test_a_fork_server_that_hangs_is_replaced(calls):
    assert calls.call()
    os.kill(calls.facts()["parent"], signal.SIGSTOP)
    with pytest.raises(OSError, match="timed out"):
        calls.call(seconds=0.2)
    assert calls.call()


def test_a_module_that_cannot_be_imported_has_no_fork(tmp_path):
    with closing(Calls(tmp_path, "scriptmode.absent")) as calls:
        assert not calls.call()
