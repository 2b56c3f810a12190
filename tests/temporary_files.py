"""A directory of its own for the temporary files of a run. It is removed at the end, and what is left in it fails the run."""

from __future__ import annotations

import fnmatch
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from scriptmode_runtime._files import scratch

PREFIX = "sm-"
#: What programs of others leave there: TensorBoard; TensorFlow's AutoGraph and pip in a process that was killed; uv, which
#: locks a source that it builds; Chromium; fish; and, with the default names of ``tempfile``, notebooks and TensorFlow's
#: Estimator without a model directory.
OF_OTHERS = (
    ".tensorboard-info", "__autograph_generated_file*", "__pycache__", "pip-*", "uv-*.lock", "*.chromium.*", "fish.*",
    "tmp????????",
)  # fmt: skip
#: Seconds in which detached processes of the last tests end, and for which the files of a failed run are kept.
WAIT_SECONDS, KEPT_SECONDS = 30.0, 24 * 3600.0


class TemporaryFiles:
    """A plugin of the process that reports; the processes that run tests inherit its ``TMPDIR``.

    The directories of ``tmp_path`` are in it, too. It is kept for a day if a test fails, or the run is killed.
    """

    def __init__(self, config: pytest.Config) -> None:
        _remove_old(Path(tempfile.gettempdir()))
        # A short name, because paths of sockets below it have 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self.folder.chmod(0o1777)  # some tests are of another user
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)
        self.paths = self.folder / "t"
        config.option.basetemp = config.option.basetemp or str(self.paths)
        self.remaining: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run for what is left; this is after the processes that run tests ended."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (found := self._find_remaining()) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.remaining = found
        if found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            shutil.rmtree(self.folder, ignore_errors=True)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what is left, and where the files of failed tests are: last, because all tests may have passed."""
        if self.remaining:
            terminalreporter.section(f"left in the directory for temporary files: {len(self.remaining)}")
            for line in self.remaining:
                terminalreporter.write_line(line, red=True)
        if self.folder.exists():
            terminalreporter.write_line(f"the temporary files of this run are kept for a day: {self.folder}")

    def _find_remaining(self) -> list[str]:
        """Return a line for each thing that the run left: its name, and the first names in it.

        The directories of killed launchers are none: the next launcher of a user removes them.
        """
        scratch.remove_orphans([str(self.folder)])
        paths = [path for path in sorted(self.folder.iterdir()) if path != self.paths]
        return [
            *(f"the mount {point}" for point in _mounts(self.folder)),
            *(
                f"{path.name} {_names(path)[:5] or ''}"
                for path in paths
                if not any(fnmatch.fnmatch(path.name, pattern) for pattern in OF_OTHERS)
            ),
        ]


def _names(path: Path) -> list[str]:
    """Return the names in a directory; none of a file, or of what a process removes meanwhile."""
    try:
        return sorted(each.name for each in path.iterdir())
    except OSError:
        return []


def _remove_old(folder: Path) -> None:
    """Remove the directories of runs that failed or were killed a day ago, unless something is mounted in them."""
    for path in folder.glob(f"{PREFIX}[0-9]*-*"):
        is_running = Path("/proc", path.name.split("-")[1]).exists()
        if not is_running and time.time() - path.stat().st_mtime > KEPT_SECONDS and not _mounts(path):
            shutil.rmtree(path, ignore_errors=True)


def _mounts(folder: Path) -> list[str]:
    """Return the mount points below a directory (proc(5), field 5 of mountinfo)."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [point for point in points if point.startswith(f"{folder}/")]
