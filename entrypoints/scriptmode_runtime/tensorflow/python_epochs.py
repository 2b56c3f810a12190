"""Which FIFO of a channel is next, in Python: what ``native/epochs.h`` and ``native/channel.h`` do."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import stat
from dataclasses import dataclass

import tensorflow as tf

from scriptmode_runtime import contract


class _Statx(ctypes.Structure):
    """``struct statx`` (statx(2)): its inode and time of birth, which `os.stat` does not give on Linux."""

    _fields_ = (
        ("_before_inode", ctypes.c_uint8 * 32),
        ("inode", ctypes.c_uint64),
        ("_before_birth", ctypes.c_uint8 * 40),
        ("birth_seconds", ctypes.c_int64),
        ("birth_nanoseconds", ctypes.c_uint32),
        ("_after_birth", ctypes.c_uint8 * 164),
    )


_AT_FDCWD, _AT_EMPTY_PATH, _STATX_INO_AND_BTIME = -100, 0x1000, 0x900


def identity(file: str | int) -> str:
    """Tell a file, by its path or open, from all others that had its name before; "" if there is none."""
    found = _Statx()
    libc = ctypes.CDLL(None, use_errno=True)
    place = (file, b"", _AT_EMPTY_PATH) if isinstance(file, int) else (_AT_FDCWD, os.fsencode(file), 0)
    if libc.statx(*place, _STATX_INO_AND_BTIME, ctypes.byref(found)) != 0:
        return ""
    return f"{found.inode}:{found.birth_seconds}.{found.birth_nanoseconds}"


def folder(given: str, below: str) -> str:
    """Give the folder a setting names, else the one below this process's training folder."""
    return given or f"{os.environ.get(contract.BASE_DIR_VARIABLE) or contract.DEFAULT_BASE_DIR}/{below}"


def check_channel(path: str, channel: str) -> None:
    """Raise TensorFlow's error unless the file has the channel, in pipe mode."""
    try:
        with open(path, encoding="utf-8") as file:
            channels = json.load(file)
    except OSError as error:
        raise tf.errors.NotFoundError(
            None,
            None,
            f"{path} cannot be read ({error.strerror}): it says which channels a training host has; "
            "SAGEMAKER_BASE_DIR or config_dir names another folder",
        ) from error
    except ValueError as error:
        raise tf.errors.FailedPreconditionError(None, None, f"{path} is no JSON object of channels") from error
    if channel not in channels:
        names = ", ".join(map(repr, channels)) or "none"
        raise tf.errors.NotFoundError(
            None,
            None,
            f"channel {channel!r} is not in {path}; the channels there are: {names}; "
            "give the job's inputs one of that name",
        )
    mode = channels[channel].get("TrainingInputMode", "Pipe")
    if mode != "Pipe":
        raise tf.errors.FailedPreconditionError(
            None,
            None,
            f"channel {channel!r} is in {mode} mode ({path}): read its files, "
            "or give it as TrainingInput(..., input_mode='Pipe')",
        )


@dataclass
class Epochs:
    """One channel's FIFOs, and the file in ``state_dir`` that says to every process of the run which is next."""

    pipe_dir: str
    config_file: str
    state_dir: str
    channel: str
    epoch: int = 0

    @property
    def path(self) -> str:
        """The FIFO of this epoch."""
        return self._path(self.epoch)

    def open(self) -> int | None:
        """Open the next FIFO, if it is there, and note that it is taken."""
        name = os.path.join(self.state_dir, self.channel)
        try:
            os.makedirs(self.state_dir, exist_ok=True)
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with open(descriptor, "r+", encoding="utf-8") as state:
                fcntl.flock(state, fcntl.LOCK_EX)
                return self._open(state)
        except OSError as error:
            raise tf.errors.FailedPreconditionError(
                None,
                None,
                f"{name}, which says what epoch is next, cannot be written ({error.strerror}); "
                "state_dir names another folder",
            ) from error

    def _open(self, state) -> int | None:  # type: ignore[no-untyped-def] # noqa: ANN001 - a text file
        run, _, rest = state.read().partition("\n")
        after, _, first = rest.removesuffix("\n").partition("\n")
        self.epoch = int(after) if run == self._run() and after.isdecimal() else 0
        # An earlier run in the same folder had another first FIFO.
        if self.epoch and identity(self._path(0)) not in ("", first):
            self.epoch = 0
        fifo = self._open_fifo()
        if fifo is not None:
            # Of what was opened: its name may be gone by now, if the epoch is a short one.
            first = first if self.epoch else identity(fifo)
            state.seek(0)
            state.truncate()
            state.write(f"{self._run()}\n{self.epoch + 1}\n{first}\n")
        return fifo

    def _open_fifo(self) -> int | None:
        try:
            fifo = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            message = f"{self.path} cannot be opened: {error.strerror}"
            raise tf.errors.FailedPreconditionError(None, None, message) from error
        if not stat.S_ISFIFO(os.fstat(fifo).st_mode):
            os.close(fifo)
            raise tf.errors.FailedPreconditionError(
                None, None, f"{self.path} is no FIFO, as the channel of a job in pipe mode has for each epoch"
            )
        return fifo

    def _path(self, epoch: int) -> str:
        return os.path.join(self.pipe_dir, f"{self.channel}_{epoch}")

    def _run(self) -> str:
        """Tell this run from others: a job has its name, and each start of one on a host writes its files anew."""
        job = os.environ.get(contract.JOB_NAME_VARIABLE, "")
        try:
            written = os.stat(self.config_file).st_mtime_ns
        except FileNotFoundError:
            written = 0
        return f"{job} {identity(self.config_file)} {written}"
