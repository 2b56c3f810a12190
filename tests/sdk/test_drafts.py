"""Drafts, files and directories that are not complete: those of killed processes are removed, all others stay."""

import os
import signal
import subprocess
import sys

import pytest
from fakes.processes import until

from scriptmode._core.machine import drafts

#: Creates drafts of every kind in a directory, and keeps them.
OWNER = """
import os, sys, time
from pathlib import Path
from scriptmode._core.machine import drafts

folder = Path(sys.argv[1])
descriptor, name = drafts.new_file(folder)
os.write(descriptor, b"half")
with drafts.new_directory(folder) as directory:
    (directory / "half").touch()
    (folder / "ready").touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_drafts_stay_while_their_process_lives_and_are_removed_after_it(tmp_path, number):
    (tmp_path / "kept").touch()
    os.mkfifo(tmp_path / ".scriptmode-new-fifo")
    (tmp_path / ".scriptmode-new-link").symlink_to("kept")
    owner = subprocess.Popen((sys.executable, "-c", OWNER, str(tmp_path)))
    try:
        until((tmp_path / "ready").exists)
        before = sorted(tmp_path.iterdir())
        drafts.remove_orphans(tmp_path)
        assert sorted(tmp_path.iterdir()) == before
    finally:
        owner.send_signal(number)
        owner.wait()
    drafts.remove_orphans(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".scriptmode-new-fifo", ".scriptmode-new-link", "kept", "ready"}


#: Downloads a model that never arrives; a platform without `fetch` fails at once.
DOWNLOAD = """
import sys, time
from types import SimpleNamespace
import scriptmode_cli
from scriptmode.__main__ import main
from scriptmode._results.artifacts import download

def fetch(uri, target):
    target.mkdir()
    (target / "model.tar.gz").write_bytes(b"half")
    print("downloading", flush=True)
    time.sleep(600)

scriptmode_cli.main = lambda: download(SimpleNamespace(fetch=fetch), "s3://bucket/model.tar.gz", sys.argv[1], extract=True)
main()
"""


@pytest.fixture
def downloading(tmp_path):
    """A command that downloads a model into a directory of the test's."""
    argv = (sys.executable, "-c", DOWNLOAD, str(tmp_path / "model"))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"downloading\n"
        assert len(list(tmp_path.iterdir())) == 1
        yield process
        process.kill()


def test_a_download_that_gets_sigterm_leaves_nothing(tmp_path, downloading):
    downloading.terminate()
    assert downloading.wait() == -signal.SIGTERM
    assert (downloading.stderr.read(), list(tmp_path.iterdir())) == (b"", [])
