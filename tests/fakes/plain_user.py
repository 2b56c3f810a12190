"""Python programs run by an unprivileged user, who may use the Docker daemon if one runs."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parents[1]
#: Root becomes this one; anybody else is a plain user already.
UID = 12321 if os.geteuid() == 0 else os.geteuid()
SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")[len("unix://") :]


@contextmanager
def folder_of_the_user():
    """A new folder of the user's, which the user can reach: pytest's own are the tester's alone."""
    path = Path(tempfile.mkdtemp(prefix="plain-user-"))
    os.chown(path, UID, -1)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def run(program, *arguments, home, timeout=600):
    """Run a program as the user; give what it wrote to its standard output."""
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "DOCKER_HOST")},
        "HOME": str(home),
        "PYTHONPATH": str(TESTS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = (sys.executable, "-c", program, *arguments)
    if os.geteuid() == 0:
        user = (f"--reuid={UID}", f"--regid={UID}", f"--groups={_group()}")
        argv = ("unshare", "--mount", "sh", "-euc", _uncovering(), "sh", "setpriv", *user, "--", *argv)
    done = subprocess.run(
        argv, env=environment, cwd=home, check=False, timeout=timeout,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _group():
    """Return the group that may use the Docker daemon, or the user's own if none runs."""
    socket = Path(SOCKET)
    return socket.stat().st_gid if socket.exists() else UID


def _uncovering():
    """Return a script that makes Python and the checkout readable if they are in directories of root, such as /root."""
    needed = list(dict.fromkeys(str(Path(path).resolve()) for path in (sys.base_prefix, sys.prefix, TESTS.parent)))
    hidden = {path: cover for path in needed if (cover := _cover(Path(path)))}
    lines = ["kept=$(mktemp -d)", "mount -t tmpfs none $kept"]
    for number, path in enumerate(hidden):
        lines += [f"mkdir $kept/{number}", f"mount --rbind {shlex.quote(path)} $kept/{number}"]
    lines += [f"mount -t tmpfs -o mode=0755 none {shlex.quote(str(cover))}" for cover in set(hidden.values())]
    for number, path in enumerate(hidden):
        lines += [f"mkdir -p {shlex.quote(path)}", f"mount --rbind $kept/{number} {shlex.quote(path)}"]
    return "\n".join([*lines, "umount --lazy $kept", "rmdir $kept", 'exec "$@"'])


def _cover(path):
    """Return the first directory of a path that other users may not enter, or None."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)
