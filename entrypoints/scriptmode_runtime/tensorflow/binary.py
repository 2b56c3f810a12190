"""``python -m scriptmode_runtime.tensorflow.binary``: find the binary of the operations that read pipes, or compile it.

One binary works with every TensorFlow since 2.15, so a wheel contains it (`IN_WHEEL`), if there was a compiler where it
was built. Else the first process that needs one compiles it, in about two seconds, into a cache that all later ones
share. Does not import TensorFlow.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile

_SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")
IN_WHEEL = os.path.join(_SOURCES, "pipe_reader.so")
#: The variable with the compiler; the default is the first of `_COMPILERS` on PATH.
COMPILER_VARIABLE = "CXX"
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
#: The library that the operations are linked to; every version of TensorFlow has loaded it under this name.
_TENSORFLOW = "libtensorflow_framework.so.2"
_COMPILE_SECONDS = 600.0
#: What an error without a binary ends with.
ADVICE = (
    "install a C++ compiler (apt install g++), or name one in CXX, and run again; or install a wheel of scriptmode "
    "that has the binary ('pip wheel --no-deps .' in a clone, on a machine with a compiler, builds one); or read "
    "the channel in File or FastFile mode"
)


class NoBinaryError(RuntimeError):
    """There is no binary and it cannot be compiled; the text has the reason."""


def cached_path(*, makes_folder: bool = True) -> str:
    """Return the path of the binary of these sources in this machine's cache; create its directory on request."""
    digest = hashlib.sha256(repr((_FLAGS, platform.machine(), platform.libc_ver())).encode())
    for name in sorted(glob.glob(os.path.join(glob.escape(_SOURCES), "*.[ch]*"))):
        with open(name, "rb") as file:
            digest.update(file.read())
    return os.path.join(_cache_folder(makes=makes_folder), f"pipe_reader-{digest.hexdigest()[:24]}.so")


def exists() -> bool:
    """Return whether there is a binary already, without creating the cache."""
    try:
        return os.path.exists(IN_WHEEL) or os.path.exists(cached_path(makes_folder=False))
    except (OSError, NoBinaryError):
        return False


def compile_cached() -> str:
    """Return the path of the cached binary, compiled now where it is missing; raises `NoBinaryError`."""
    try:
        path = cached_path()
        if os.path.exists(path):
            return path
        compiler = find_compiler()
        # One process compiles while the others of the machine wait; they see the complete file or none.
        with open(f"{path}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(path):
                build(compiler, f"{path}.unfinished")
                os.replace(f"{path}.unfinished", path)
    except OSError as error:
        raise NoBinaryError(f"the pipe reader's cache cannot be written: {error}") from error
    return path


def build(compiler: str, path: str, *more_flags: str) -> None:
    """Compile the operations to ``path``; raises `NoBinaryError` with the compiler's output."""
    with tempfile.TemporaryDirectory() as folder:
        # TensorFlow itself is not needed, only its library's name.
        named = os.path.join(folder, _TENSORFLOW)
        empty = os.path.join(folder, "empty.cc")
        with open(empty, "w", encoding="utf-8"):
            pass
        _run(compiler, "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{_TENSORFLOW}", empty, "-o", named)
        source = os.path.join(_SOURCES, "pipe_reader.cc")
        _run(compiler, *_FLAGS, *more_flags, source, "-o", path, "-Wl,--no-as-needed", named)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", timeout=_COMPILE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoBinaryError(f"{command[0]} cannot compile the pipe reader: {error}") from error
    if done.returncode:
        raise NoBinaryError(f"{command[0]} cannot compile the pipe reader: {done.stderr.strip()[-2000:]}")


def find_compiler() -> str:
    """Return the compiler's path; raises `NoBinaryError` where there is none."""
    named = os.environ.get(COMPILER_VARIABLE)
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, _COMPILERS)), None)
    if not path:
        wanted = f"{COMPILER_VARIABLE}={named!r}" if named else " or ".join(_COMPILERS)
        raise NoBinaryError(f"no compiler: {wanted} is not on PATH")
    return path


def _cache_folder(*, makes: bool) -> str:
    below: tuple[str, ...] = ("scriptmode",)
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not home:
        home, below = os.path.expanduser("~"), (".cache", "scriptmode")
    way = [os.path.join(home, *below[:depth]) for depth in range(len(below) + 1)]
    # Checked before anything is created in what may be another user's home, and again afterwards.
    if os.path.isabs(home) and all(map(_is_own, filter(os.path.exists, way))):
        with contextlib.suppress(OSError):
            if makes:
                os.makedirs(way[-1], mode=0o700, exist_ok=True)
            if os.access(_existing(way[-1]), os.W_OK) and all(map(_is_own, filter(os.path.exists, way))):
                return way[-1]
    return _shared_folder(makes=makes)


def _existing(folder: str) -> str:
    """Return a directory, or its nearest existing parent."""
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder


def _is_own(folder: str) -> bool:
    """Return whether only this user and root can write to a directory.

    A binary in it runs as this user, who may be root with another user's HOME.
    """
    status = os.stat(folder)
    return status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022


def _shared_folder(*, makes: bool) -> str:
    """Return a private directory of this user below the one for temporary files, for users without a home."""
    folder = os.path.join(tempfile.gettempdir(), f"scriptmode-{os.getuid()}")
    if makes:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        # A binary in it runs as this user.
        raise NoBinaryError(f"{folder} belongs to another user; set XDG_CACHE_HOME to another cache directory")
    return folder


def main() -> int:
    """Write the path of the binary, compiled now where it is missing."""
    try:
        path = IN_WHEEL if os.path.exists(IN_WHEEL) else compile_cached()
    except NoBinaryError as error:
        sys.stderr.write(f"scriptmode: {error}; {ADVICE}\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
