"""A private copy of the checkout and of its environment, in which mutants are applied and tests run.

The tests run in namespaces of their own: a mutant can neither signal processes nor change files outside the copy, and
what it leaves ends with the namespace. That needs root.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.house import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Not below /tmp, in whose place the tests find an empty folder.
FOLDER = "/var/tmp"
COVERAGE = """[run]
parallel = true
data_file = {folder}/map/data
context = ${{PYTEST_CURRENT_TEST}}
source =
    {folder}/checkout/sdk
    {folder}/checkout/entrypoints
patch = _exit, fork
disable_warnings = no-data-collected, module-not-measured, module-not-imported, dynamic-conflict
"""


class Checkout:
    """The copy: ``path`` has the files that git knows or would add, and an environment that imports them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="scriptmode-mutants-", dir=FOLDER))
        self.path = self.folder / "checkout"
        self.data = self.folder / "map"
        for name in ("map", "tmp", "home"):
            (self.folder / name).mkdir()
        command = ["git", "-C", str(sources.ROOT), "ls-files", "-coz", "--exclude-standard"]
        for name in subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0"):
            if name and (sources.ROOT / name).is_file():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(sources.ROOT / name, self.path / name)
        self._copy_environment()
        (self.folder / "coverage").write_text(COVERAGE.format(folder=self.folder))

    def _copy_environment(self) -> None:
        """Link to the packages of the environment, but write the files that name the checkout."""
        environment = Path(sys.prefix)
        packages = next(environment.glob("lib/*/site-packages"))
        for folder in (environment, environment / "bin", packages):
            copy = self.path / ".venv" / folder.relative_to(environment)
            copy.mkdir(parents=True)
            for entry in folder.iterdir():
                if entry.name in {"bin", "lib", "lib64"} and folder == environment:
                    continue
                content = entry.read_bytes() if entry.is_file() and not entry.is_symlink() else b"\0"
                if b"\0" in content:
                    (copy / entry.name).symlink_to(entry.readlink() if entry.is_symlink() else entry)
                else:
                    (copy / entry.name).write_bytes(content.replace(os.fsencode(sources.ROOT), os.fsencode(self.path)))
                    shutil.copymode(entry, copy / entry.name)

    @contextlib.contextmanager
    def pytest(
        self, *arguments: str, pass_fds: tuple[int, ...] = (), **variables: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start pytest in namespaces of its own; at the end of the context, end what still runs there."""
        folder, tests = shlex.quote(str(self.folder)), ["-q", "--tb=no", "-p", "no:cacheprovider", *arguments]
        mounts = f"mount --bind {folder} {folder}; mount --bind {folder}/tmp /tmp; mount -t tmpfs tmpfs /dev/shm"
        script = f"set -e; {mounts}; mount -o remount,bind,ro /; cd {folder}/checkout; exec .venv/bin/python -m pytest {shlex.join(tests)}"
        environment = {**os.environ, "HOME": str(self.folder / "home"), "TMPDIR": "/tmp", **variables}
        namespaces = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
        with (self.folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [*namespaces, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=environment, start_new_session=True, pass_fds=pass_fds,
            )  # fmt: skip
        try:
            yield process
        finally:
            # With unshare ends its child, the namespace's init, and with that every process in the namespace.
            process.kill()
            process.wait()

    def output(self) -> str:
        """Return the end of what pytest printed."""
        return (self.folder / "output").read_text(errors="replace")[-3000:]

    def close(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)
