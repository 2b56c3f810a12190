"""Several ``train`` processes of one job, which succeed or fail together, and strangers on the port between them."""

import contextlib
import json
import resource
import selectors
import socket
import sys
import threading
import time

import pytest
from fakes.host_folders import write_job
from processes.launchers import child, until

MIRRORED = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}
FLOOD = 1500
#: More than a process may have by default, less than the flood.
FILES = 1024


@pytest.fixture
def many_files():
    earlier = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(3 * FLOOD, earlier[1]), earlier[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, earlier)


class Flood:
    """Keeps connections open, and makes new ones in place of those that are closed, for as long as it lasts."""

    def __init__(self, port, says=b""):
        self.made = 0
        self._port = port
        self._says = says
        self._sockets = set()
        self._selector = selectors.DefaultSelector()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        self._thread.join(10)
        for each in self._sockets:
            each.close()
        self._selector.close()

    def _run(self):
        while not self._over:
            if len(self._sockets) < FLOOD:
                self._connect()
            for key, _ in self._selector.select(0):
                with contextlib.suppress(OSError):
                    if key.fileobj.recv(4096):
                        continue
                self._selector.unregister(key.fileobj)
                self._sockets.discard(key.fileobj)
                key.fileobj.close()
            time.sleep(0.0005)  # some 2,000 connections a second at most: a test's part of this machine

    def _connect(self):
        with contextlib.suppress(OSError):
            made = socket.create_connection(("127.0.0.1", self._port), timeout=0.1)
            self.made += 1
            self._sockets.add(made)
            self._selector.register(made, selectors.EVENT_READ)
            if self._says:
                made.sendall(self._says)


def job_of(tmp_path, count, script):
    folders = list(write_job(tmp_path / "job", count, {"train.py": script}, **MIRRORED).values())
    document = json.loads((folders[0] / "input/config/scriptmode.json").read_text())
    return folders, document["hosts"]["algo-1"]["ports"]["peers"]


def limited(tmp_path):
    """Return an interpreter whose processes may open no more than `FILES`."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nulimit -n {FILES}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)


def is_listening(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "says",
    [b"", b'{"type": "join", "host": "algo-2", "proof": "none"}\n', b"x" * 100_000],
    ids=["none", "join", "long"],
)
def test_a_flood_before_and_while_hosts_join_does_not_keep_them_out(tmp_path, launch, many_files, says):
    folders, port = job_of(tmp_path, 3, "print('trained')")
    first = launch(folders[0], python=limited(tmp_path))
    until(lambda: is_listening(port))
    with Flood(port, says) as flood:
        until(lambda: flood.made >= FLOOD)
        launchers = [first, *(launch(folder) for folder in folders[1:])]
        assert [launcher.wait(600) for launcher in launchers] == [0, 0, 0], first.output
    assert all("trained" in launcher.output for launcher in launchers)


def test_a_silent_unauthenticated_connection_is_closed(tmp_path, launch):
    folders, port = job_of(tmp_path, 2, child("sleeps.py"))
    launch(folders[0])
    with until(lambda: connected(port)) as stranger:
        stranger.settimeout(600)
        assert b"hello" in stranger.recv(4096)
        began = time.monotonic()
        assert stranger.recv(4096) == b""
        assert time.monotonic() - began > 5


def connected(port):
    with contextlib.suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_host_that_ended_well_waits_for_the_others_and_fails_with_them(tmp_path, launch):
    go = tmp_path / "go"
    script = f"""
import os, sys, time
while os.environ["SM_CURRENT_HOST"] == "algo-2":
    if os.path.exists({str(go)!r}):
        sys.exit(7)
    time.sleep(0.01)
"""
    launchers = [launch(base) for base in job_of(tmp_path, 3, script)[0]]
    launchers[0].says("worker ended with exit code 0")
    launchers[2].says("worker ended with exit code 0")
    assert launchers[0].process.poll() is None
    go.touch()
    assert [launcher.wait() for launcher in launchers] == [7, 7, 7]


def test_a_host_that_cannot_start_its_program_ends_the_job(tmp_path, launch):
    folders, _ = job_of(tmp_path, 2, child("sleeps.py"))
    (folders[1] / "code" / "train.py").rename(folders[1] / "code" / "other.py")
    launchers = [launch(base) for base in folders]
    assert [launcher.wait() for launcher in launchers] == [1, 1]
    assert {launcher.failure for launcher in launchers} == {launchers[0].failure}
    assert "algo-2: the entry point 'train.py' is not in the source" in launchers[0].failure


def test_a_stranger_on_the_port_between_hosts_changes_nothing(tmp_path, launch):
    (*first, last), port = job_of(tmp_path, 3, "print('trained')")
    launchers = [launch(base) for base in first]
    for launcher in launchers:
        launcher.says("worker ended with exit code 0")
    for words in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"type": "failed", "host": "algo-2", "exit_code": 9, "message": "lie"}\n',
        b"x" * 100_000,
        b"[" * 3_000 + b"\n",
        b'{"type": "join", "host": "algo-2", "nonce": "n", "proof": "\xc3\xa9"}\n',
        b'{"type": "join", "host": "\\ud800", "nonce": "\\ud800", "proof": "\\ud800"}\n',
    ):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(words)
    # Until the last host is there the first one listens.
    launchers.append(launch(last))
    assert [launcher.wait() for launcher in launchers] == [0, 0, 0]
