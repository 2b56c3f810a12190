"""The relay beside the job's agent: the other end of the stream to a `remote_host`, one process for each host.

For the job's agent it is the host's agent, with the messages of `host_messages`. It sends the host's configuration, its
source and the checkpoints, and writes what comes back to the job's directory, before the event that follows it. It
reads while it sends. A host may run any code: what comes from there is checked before it is written or passed on.
"""

from __future__ import annotations

import json
import signal
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import changed
from scriptmode._core.spec.job_failure import Failure
from scriptmode.errors import DataError, PlatformError
from scriptmode_local._agent import host_messages
from scriptmode_local._data import file_uris
from scriptmode_local._opt_ml.opt_ml import checkpoints_path
from scriptmode_local._remote.frames import Frame, FrameReader, StreamError, send_frame, wait_for
from scriptmode_local._remote.trees import KINDS, TreeReceiver, send_all
from scriptmode_runtime import contract
from scriptmode_runtime._files import beneath

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import Channel
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._remote.tls_stream import ListeningStream
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder

_POLL_SECONDS = 0.2
#: Seconds without a frame after which the host is lost; its connection may be away for as long.
SILENT_SECONDS = 120.0
#: The same where its machine is known to have ended: a host sends a sign of life every `host_messages.ALIVE_SECONDS`.
_GONE_SECONDS = host_messages.ALIVE_SECONDS + 1
_NO_ANSWER = "its machine, or the network to it, does not answer"
#: Commands that make the rest of files needless.
_ENDS = ("terminate", "kill", "end")


class _LostError(Exception):
    """Error for a host that is lost, and how."""


class _InterruptedError(Exception):
    """Error for files that are not needed any more: the host ends."""


class Relay:
    """The relay of one host of a job; ``pipes`` are descriptors: commands are read, and events are written."""

    def __init__(
        self, job: tuple[JobFolder, Job], host: str, stream: ListeningStream, pipes: tuple[int, int], fleet: Fleet
    ) -> None:
        folder, self._job = job
        self._folder = folder
        self._host = host
        self._stream, self._frames = stream, FrameReader(stream)
        self._commands, self._events = host_messages.MessageReader(pipes[0], "do"), pipes[1]
        self._fleet = fleet
        #: What the host may write in the job's directory: trees, the growing log, and the usage.
        trees = contract.OUTPUT_DIR, contract.MODEL_DIR, checkpoints_path(job[1].request.output)
        self._trees = [f"hosts/{host}/{name}" for name in trees]
        self._log = str(folder.log(host).relative_to(folder.path))
        self._usage = str(folder.usage_file(host).relative_to(folder.path))
        roots = (*self._trees, self._log, self._usage)
        self._receiver = TreeReceiver(folder.path, folder.channels / f"incoming-{host}", roots)
        self._hello: Frame | None = None
        self._is_started = self._has_failed = self._is_finished = False
        #: Commands that were not passed on: they wait for the start of the host, and for files.
        self._pending: deque[Any] = deque()
        self._message: str | None = None
        self._heard = self._beaten = time.monotonic()

    def run(self) -> int:
        """Pass on commands and events until the host's agent is finished; return the exit code, 1 for a lost host."""
        try:
            while not self._is_finished:
                self._turn()
                if not self._is_finished and (loss := self._find_loss()):
                    return self._lose(loss)
        except BrokenPipeError:
            return 1
        except _LostError as lost:
            return self._lose(str(lost))
        except (StreamError, OSError) as error:
            return self._lose(f"what it sends cannot be received: {error}")
        return 0

    def _find_loss(self) -> str:
        """Return how the host was lost; "" for one that is there."""
        silence = time.monotonic() - self._heard
        if (self._hello is None or silence > _GONE_SECONDS) and (loss := self._fleet.describe_loss(self._host)):
            return loss
        if self._frames.is_closed or silence > SILENT_SECONDS:
            return _NO_ANSWER
        return ""

    def _lose(self, loss: str) -> int:
        failure = Failure(f"{self._host} is lost: {loss}", host=self._host)
        with suppress(BrokenPipeError):
            self._send_event("failed", kind="InternalServerError", failure=asdict(failure))
        return 1

    def _turn(self) -> None:
        self._wait()
        self._run_commands()
        if self._is_started or self._has_failed or self._is_finished:
            return
        if self._frames.is_closed and (why := self._fleet.why_replaced(self._host)):
            self._stream.accept_another()
            self._frames, self._hello = FrameReader(self._stream), None
            self._send_event("log", host=self._host, text=why)
        if not self._find_loss():
            self._try_to_start()

    def _wait(self, *writable: int) -> None:
        """Wait until something has arrived or can be written, read commands and frames, and give a sign of life."""
        readable = [self._commands.descriptor, *([] if self._frames.is_closed else self._stream.descriptors)]
        ready = wait_for(readable, writable, seconds=_POLL_SECONDS)
        if self._commands.descriptor in ready:
            self._pending += self._commands.read()
            if self._commands.is_closed:
                raise BrokenPipeError("the job's agent is gone")
        for frame in self._frames.read():
            self._heard = time.monotonic()
            self._receive(frame)
        if any(descriptor in ready for descriptor in writable):
            self._heard = time.monotonic()
        if time.monotonic() - self._beaten > host_messages.ALIVE_SECONDS:
            self._send_event("alive")

    def _try_to_start(self) -> None:
        try:
            if self._hello is None:
                self._heard = time.monotonic()
                self._send_waiting(self._fleet.waits_for(self._host))
            elif self._fleet.write_sandbox(self._host, self._hello.fields["address"]):
                self._start(self._hello.fields["folder"])
            else:
                self._send_waiting(host_messages.OTHER_HOSTS)
        except _InterruptedError:
            return
        except (PlatformError, DataError, OSError) as error:
            self._has_failed = True
            failure = Failure(f"{self._host} cannot be prepared: {error}", host=self._host)
            self._send_event("failed", kind="ClientError", failure=asdict(failure))

    def _send_waiting(self, message: str) -> None:
        if message != self._message:
            self._message = message
            self._send_event("waiting", message=message)

    def _start(self, folder: str) -> None:
        """Send the host its part of the job's directory, and what it was told until now."""
        channels = [self._send_channel(channel, folder) for channel in self._job.request.channels]
        job = replace(self._job, request=replace(self._job.request, channels=tuple(channels)), fields=None)
        self._send("file", json.dumps(job.to_json()).encode(), path="job.json", last=True, mode=0o600, mtime=0)
        send_all(self._folder.path, [f"hosts/{self._host}"], self._send_file)
        self._send("start", host=self._host)
        self._is_started = True
        self._send_waiting("")

    def _send_channel(self, channel: Channel, folder: str) -> Channel:
        """Send the files of a channel that are on this machine; return the channel with their place on the host's."""
        uri = str(getattr(channel.source, "s3_data", ""))
        if not file_uris.is_file(uri):
            return channel
        path, place = file_uris.file_path(uri), f"inputs/{channel.name}"
        if self._host in self._job.request.channel_hosts(channel):
            # The URI is the beginning of names, as in S3.
            names = [entry.name for entry in path.parent.iterdir() if entry.name.startswith(path.name)]
            self._send_renamed(path.parent, [path.name] if uri.endswith("/") else names, place)
        there = f"{file_uris.SCHEME}{folder}/{place}/{path.name}" + ("/" if uri.endswith("/") else "")
        return replace(channel, source=changed(channel.source, s3_data=there))

    def _send_renamed(self, folder: Path, names: list[str], place: str) -> None:
        def send(kind: str, content: bytes = b"", **fields: Any) -> None:
            self._send_file(kind, content, **{**fields, "path": f"{place}/{fields['path']}"})

        send_all(folder, names, send)

    def _run_commands(self) -> None:
        """Pass on the commands that have arrived, once the host is started; it may be told to end before."""
        while self._pending and self._is_started:
            self._pass_on(self._pending.popleft())
        if any(command["do"] == "end" for command in self._pending):
            self._send_event("finished", problems=[], misplaced="")
            self._is_finished = True

    def _pass_on(self, command: Any) -> None:
        if command["do"] == "train":
            own = f"hosts/{self._host}/{checkpoints_path(self._job.request.output)}"
            try:
                if (self._folder.path / own).is_dir():
                    send_all(self._folder.path, [own], self._send_file)
            except _InterruptedError:
                self._send_event("ended", host=self._host, code=-signal.SIGTERM, machine_failure="")
                return
        self._send("message", json.dumps(command).encode() + b"\n")

    def _receive(self, frame: Frame) -> None:
        if frame.kind == "hello":
            self._hello = self._hello or frame
        elif frame.kind in KINDS:
            self._receive_file(frame)
            # A large file is a sign of life, too.
            if time.monotonic() - self._beaten > 1:
                self._send_event("alive")
        elif frame.kind == "message":
            try:
                self._receive_event(host_messages.parse(frame.content, "event"))
            except (host_messages.UnreadableMessageError, TypeError) as error:
                raise StreamError(f"a message is not an event: {error}") from error

    def _receive_file(self, frame: Frame) -> None:
        """Write what a frame says; raise `StreamError` for a link in the place of what is not in a tree."""
        path = beneath.checked(frame.fields["path"])
        if path in (self._log, *self._trees) or not path.startswith("hosts/"):
            kinds = ("append",) if path == self._log else ("directory", "file", "remove")
            if frame.kind not in kinds:
                raise StreamError(f"{path!r} is not changed by a frame of the kind {frame.kind!r}")
            if path.startswith("usage/") and path != self._usage:
                # The draft of a record.
                return
        self._receiver.receive(frame)

    def _receive_event(self, event: Any) -> None:
        if event["event"] == "started":
            # Their numbers are those of the host's machine.
            event["processes"] = {}
        elif event["event"] == "ended" and event["code"]:
            event["machine_failure"] = event["machine_failure"] or self._fleet.explain_end(self._host, event["code"])
        self._is_finished = self._is_finished or event["event"] == "finished"
        self._send_event(**event)

    def _send_file(self, kind: str, content: bytes = b"", **fields: object) -> None:
        """Send a frame of a tree; raise `_InterruptedError` once the host was told to end, or has ended."""
        if self._is_finished or any(command["do"] in _ENDS for command in self._pending):
            raise _InterruptedError
        self._send(kind, content, **fields)

    def _send(self, kind: str, content: bytes = b"", **fields: object) -> None:
        try:
            send_frame(self._stream, kind, content, wait=self._wait_to_write, **fields)
        except BrokenPipeError as error:
            raise _LostError(_NO_ANSWER) from error

    def _wait_to_write(self, descriptor: int) -> None:
        self._wait(descriptor)
        if not self._is_finished and (loss := self._find_loss()):
            raise _LostError(loss)

    def _send_event(self, event: str, **fields: object) -> None:
        self._beaten = time.monotonic()
        host_messages.send(self._events, event=event, **fields)
