"""The relay beside the job's agent: the other end of the stream to a `remote_host`, one process for each host.

For the job's agent it is the host's agent, with the messages of `host_messages`. It sends the host's configuration, its
source and the checkpoints, and writes what comes back to the job's directory, before the event that follows it.
"""

from __future__ import annotations

import json
import os
import select
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

from scriptmode.core.request.fields import changed
from scriptmode.core.spec.job_failure import Failure
from scriptmode.data import file_uris
from scriptmode.errors import DataError, PlatformError
from scriptmode.platforms.local.agent import host_messages
from scriptmode.platforms.local.remote.frames import CHUNK, FrameReader, StreamError, send_frame
from scriptmode.platforms.local.remote.trees import KINDS, TreeReceiver, send_all
from scriptmode.platforms.opt_ml import checkpoints_path

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.core.spec.inputs import Channel
    from scriptmode.platforms.local.remote.frames import Frame
    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobFolder

    _Pair = tuple[int, int]

_POLL_SECONDS = 0.2
#: Seconds without a frame after which the host is lost; its connection may be away for as long.
SILENT_SECONDS = 120.0
#: The same where its machine is known to have ended: a host sends a sign of life every `host_messages.ALIVE_SECONDS`.
_GONE_SECONDS = host_messages.ALIVE_SECONDS + 1


class RemoteHooks(Protocol):
    """What the engine adds to a relay."""

    def waits_for(self) -> str:
        """Return what a host waits for that has not said hello; raise `PlatformError` for one that never will."""

    def prepare(self, address: str, folder: str) -> bool:
        """Write the host's sandbox, once it is known where all hosts are; return whether it is there."""

    def describe_loss(self) -> str:
        """Return how a host's machine ended that does not answer; "" while it may answer again."""

    def explain_end(self, code: int) -> str:
        """Return the failure of the machine with which a host ended; "" without one."""


class Relay:
    """The relay of one host of a job; ``stream`` and ``pipes`` are pairs of descriptors, the first of them read."""

    def __init__(self, job: tuple[JobFolder, Job], host: str, stream: _Pair, pipes: _Pair, hooks: RemoteHooks) -> None:
        folder, self._job = job
        self._folder = folder
        self._host = host
        self._frames = FrameReader(stream[0])
        self._outgoing = stream[1]
        self._commands, self._events = pipes
        self._hooks = hooks
        outputs = (f"hosts/{host}", str(folder.log(host).relative_to(folder.path)))
        usage = str(folder.usage_file("").parent.relative_to(folder.path))
        self._receiver = TreeReceiver(folder.path, folder.channels / f"incoming-{host}", (*outputs, usage))
        self._hello: Frame | None = None
        self._is_started = self._has_failed = self._is_finished = False
        #: Commands that came before the host was started.
        self._early: list[bytes] = []
        self._partial = b""
        self._message = ""
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
        except (StreamError, OSError) as error:
            return self._lose(f"what it sends cannot be received: {error}")
        return 0

    def _find_loss(self) -> str:
        """Return how the host was lost; "" for one that is there."""
        silence = time.monotonic() - self._heard
        if (self._hello is None or silence > _GONE_SECONDS) and (loss := self._hooks.describe_loss()):
            return loss
        if self._frames.is_closed or silence > SILENT_SECONDS:
            return "its machine, or the network to it, does not answer"
        return ""

    def _lose(self, loss: str) -> int:
        failure = Failure(f"{self._host} is lost: {loss}", host=self._host)
        self._send_event("failed", kind="InternalServerError", failure=asdict(failure))
        return 1

    def _turn(self) -> None:
        ready, _, _ = select.select([self._frames.descriptor, self._commands], [], [], _POLL_SECONDS)
        if self._commands in ready:
            self._read_commands()
        for frame in self._frames.read():
            self._heard = time.monotonic()
            self._receive(frame)
        if not self._is_started and not self._has_failed and not self._find_loss():
            self._try_to_start()
        if time.monotonic() - self._beaten > host_messages.ALIVE_SECONDS:
            self._send_event("alive")

    def _try_to_start(self) -> None:
        try:
            if self._hello is None:
                self._heard = time.monotonic()
                if (message := self._hooks.waits_for()) != self._message:
                    self._message = message
                    self._send_event("waiting", message=message)
            elif self._hooks.prepare(self._hello.fields["address"], self._hello.fields["folder"]):
                self._start(self._hello.fields["folder"])
        except (PlatformError, DataError, OSError) as error:
            self._has_failed = True
            failure = Failure(f"{self._host} cannot be prepared: {error}", host=self._host)
            self._send_event("failed", kind="ClientError", failure=asdict(failure))

    def _start(self, folder: str) -> None:
        """Send the host its part of the job's directory, and what it was told until now."""
        channels = [self._send_channel(channel, folder) for channel in self._job.request.channels]
        job = replace(self._job, request=replace(self._job.request, channels=tuple(channels)), fields=None)
        self._send("file", json.dumps(job.to_json()).encode(), path="job.json", last=True, mode=0o600, mtime=0)
        send_all(self._folder.path, [f"hosts/{self._host}"], self._send)
        self._send("start", host=self._host)
        self._is_started = True
        self._send_event("waiting", message="")
        for line in self._early:
            self._pass_on(line)

    def _send_channel(self, channel: Channel, folder: str) -> Channel:
        """Send the files of a channel that are on this machine; return the channel with their place on the host's."""
        uri = str(getattr(channel.source, "s3_data", ""))
        if not file_uris.is_file(uri):
            return channel
        path, place = file_uris.file_path(uri), f"inputs/{channel.name}"
        if self._host in self._job.request.channel_hosts(channel):
            # The URI is the beginning of names, as in S3.
            self._send_renamed(path.parent, [each.name for each in path.parent.glob(f"{path.name}*")], place)
        there = f"{file_uris.SCHEME}{folder}/{place}/{path.name}" + ("/" if uri.endswith("/") else "")
        return replace(channel, source=changed(channel.source, s3_data=there))

    def _send_renamed(self, folder: Path, names: list[str], place: str) -> None:
        def send(kind: str, content: bytes = b"", **fields: Any) -> None:
            self._send(kind, content, **{**fields, "path": f"{place}/{fields['path']}"})

        send_all(folder, names, send)

    def _read_commands(self) -> None:
        received = os.read(self._commands, CHUNK)
        if not received:
            raise BrokenPipeError("the job's agent is gone")
        *lines, self._partial = (self._partial + received).split(b"\n")
        for line in lines:
            if self._is_started:
                self._pass_on(line)
            elif json.loads(line)["do"] == "end":
                self._send_event("finished", problems=[], misplaced="")
                self._is_finished = True
            else:
                self._early.append(line)

    def _pass_on(self, line: bytes) -> None:
        if json.loads(line)["do"] == "train":
            own = f"hosts/{self._host}/{checkpoints_path(self._job.request.output)}"
            if (self._folder.path / own).is_dir():
                send_all(self._folder.path, [own], self._send)
        self._send("message", line + b"\n")

    def _receive(self, frame: Frame) -> None:
        if frame.kind == "hello":
            self._hello = frame
        elif frame.kind in KINDS:
            self._receiver.receive(frame)
            # A large file is a sign of life, too.
            if time.monotonic() - self._beaten > 1:
                self._send_event("alive")
        elif frame.kind == "message":
            event = json.loads(frame.content)
            if event["event"] == "started":
                # Their numbers are those of the host's machine.
                event["processes"] = {}
            elif event["event"] == "ended" and event["code"]:
                event["machine_failure"] = event["machine_failure"] or self._hooks.explain_end(event["code"])
            self._is_finished = event["event"] == "finished"
            self._send_event(**event)

    def _send(self, kind: str, content: bytes = b"", **fields: object) -> None:
        send_frame(self._outgoing, kind, content, **fields)

    def _send_event(self, event: str, **fields: object) -> None:
        self._beaten = time.monotonic()
        host_messages.send(self._events, event=event, **fields)
