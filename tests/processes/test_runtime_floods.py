"""Programs that are not hosts of the job connect to the port for peers, many at once: the job goes on."""

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

from scriptmode_runtime.peers.connection import accepts_connections

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


@pytest.mark.parametrize(
    "says",
    [b"", b'{"type": "join", "host": "algo-2", "proof": "none"}\n', b"x" * 100_000],
    ids=["none", "join", "long"],
)
def test_a_flood_before_and_while_hosts_join_does_not_keep_them_out(tmp_path, launch, many_files, says):
    folders, port = job_of(tmp_path, 3, "print('trained')")
    first = launch(folders[0], python=limited(tmp_path))
    until(lambda: accepts_connections("127.0.0.1", port))
    with Flood(port, says) as flood:
        until(lambda: flood.made >= FLOOD, 60)
        launchers = [first, *(launch(folder) for folder in folders[1:])]
        assert [launcher.wait(60) for launcher in launchers] == [0, 0, 0], first.output
    assert all("trained" in launcher.output for launcher in launchers)


def test_a_flood_while_the_job_runs_reaches_nothing(tmp_path, launch, many_files):
    folders, port = job_of(tmp_path, 2, child("sleeps.py"))
    launchers = [launch(folder, python=limited(tmp_path), SCRIPTMODE_STOP_GRACE_SECONDS="10") for folder in folders]
    for launcher in launchers:
        launcher.says("asleep")
    # Every host is there, so nothing listens any more.
    until(lambda: not accepts_connections("127.0.0.1", port))
    with Flood(port) as flood:
        began = time.monotonic()
        until(lambda: time.monotonic() - began > 1)
        assert flood.made == 0
        assert [launcher.process.poll() for launcher in launchers] == [None, None]


def test_a_silent_unauthenticated_connection_is_closed(tmp_path, launch):
    folders, port = job_of(tmp_path, 2, child("sleeps.py"))
    launch(folders[0])
    with until(lambda: connected(port)) as stranger:
        stranger.settimeout(60)
        assert b"hello" in stranger.recv(4096)
        began = time.monotonic()
        assert stranger.recv(4096) == b""
        assert 5 < time.monotonic() - began < 30


def connected(port):
    with contextlib.suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), timeout=1)
