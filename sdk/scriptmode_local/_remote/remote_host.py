"""A host whose machine does not see the job's directory: it has one of its own and runs the agent.

What the relay sends (`frames`) is written to the job folder, which has the job's name; then `host_agent` runs there.
The logs and the usage that it writes are sent at once, checkpoints and other outputs every `_SYNC_SECONDS`, and the
rest before the agent's last event; the log may also be written to standard error. While it sends it also reads. It ends
with the agent, after the end of the stream or SIGTERM, which the script gets too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._agent import host_messages
from scriptmode_local._opt_ml.opt_ml import checkpoints_path
from scriptmode_local._remote.frames import Frame, FrameReader, Stream, StreamError, send_frame, wait_for
from scriptmode_local._remote.trees import KINDS, TreeReceiver, TreeSender
from scriptmode_local._store.job_store import JobFolder
from scriptmode_runtime import contract
from scriptmode_runtime._values.failure import describe_exit_code

_HOST_AGENT = "scriptmode_local._agent.host_agent"
#: Seconds between two looks at the growing files, and at the outputs.
_POLL_SECONDS, _SYNC_SECONDS = 0.2, 2.0
#: Seconds from the last event of the agent to the end of its process.
_END_SECONDS = 30.0
_READ = 64 << 10
#: Bytes of events that wait while files are sent, about.
_MOST_EVENTS = 4 << 20


class RemoteHost:
    """One host's agent, and the copy of the job's directory that it works in."""

    def __init__(self, folder: Path, stream: Stream, *, prints_log: bool) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._stream, self._reader = stream, FrameReader(stream)
        self._receiver = TreeReceiver(self._folder, self._folder / "incoming", ("job.json", "hosts", "inputs"))
        self._sender = TreeSender(self._folder, self.send)
        self._host = ""
        self._agent: subprocess.Popen[bytes] | None = None
        #: The events of the agent that were not passed on, and whether the last was.
        self._events = bytearray()
        self._is_agent_gone = self._is_finished = False
        self._synced = 0.0
        self._alive = time.monotonic()
        self._is_signalled = self._was_signalled = False
        self._error: Exception | None = None
        self._prints_log = prints_log

    def send(self, kind: str, content: bytes = b"", **fields: object) -> None:
        """Send a frame."""
        send_frame(self._stream, kind, content, wait=self._wait, **fields)

    def fail(self, cause: str) -> None:
        """Send that the job fails, the last frame."""
        failure = asdict(Failure(cause, host=self._host))
        event = {"event": "failed", "kind": "InternalServerError", "failure": failure}
        self.send("message", json.dumps(event).encode())

    def run(self) -> int:
        """Receive the job, run the agent to its end and return its exit code."""
        signal.signal(signal.SIGTERM, self._on_signal)
        while self._agent is None:
            self._wait()
            self._raise_error()
            if self._reader.is_closed:
                return 0
            if time.monotonic() - self._alive > host_messages.ALIVE_SECONDS:
                self._alive = time.monotonic()
                self.send("message", b'{"event": "alive"}')
        while not self._is_agent_gone or self._events:
            self._turn()
            self._raise_error()
        try:
            code = self._agent.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            code = self._agent.wait()
        if not self._is_finished:
            self.fail(f"the agent of {self._host} on its machine ended with {describe_exit_code(code)}")
        return code if code >= 0 else 128 - code

    def _raise_error(self) -> None:
        if self._error:
            raise self._error

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._is_signalled = self._was_signalled = True

    def _receive(self) -> None:
        """Handle the frames that have arrived; end the agent's commands after the last one."""
        try:
            for frame in self._reader.read():
                self._handle(frame)
        except (StreamError, OSError) as error:
            # Raised by `_raise_error`: a frame may be half sent.
            self._error = error
        if self._reader.is_closed and not self._is_finished:
            sys.stderr.write("scriptmode: the job's agent, or the network to it, is lost\n")
            if self._agent and self._agent.stdin:
                # This one ends, too.
                self._agent.stdin.close()
                self._agent.stdin = None

    def _handle(self, frame: Frame) -> None:
        if frame.kind in KINDS:
            self._receiver.receive(frame)
            if frame.kind == "file" and frame.fields["last"]:
                self._sender.know(frame.fields["path"])
        elif frame.kind == "start":
            self._host = frame.fields["host"]
            self._start()
        elif frame.kind == "message":
            self._command(frame.content)

    def _start(self) -> None:
        JobFolder(self._folder).log(self._host).parent.mkdir(exist_ok=True)
        JobFolder(self._folder).usage_file(self._host).parent.mkdir(exist_ok=True)
        self._agent = subprocess.Popen(
            (sys.executable, "-m", _HOST_AGENT, str(self._folder), self._host),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def _command(self, line: bytes) -> None:
        if self._agent and self._agent.stdin:
            with suppress(BrokenPipeError):
                self._agent.stdin.write(line)
                self._agent.stdin.flush()

    def _wait(self, *writable: int) -> None:
        """Wait until something has arrived or can be written; receive files, pass on commands, and read events."""
        events = self._agent.stdout.fileno() if self._agent and self._agent.stdout and not self._is_agent_gone else -1
        is_read = not (self._reader.is_closed or self._error)
        readable = [self._stream.fileno()] if is_read else []
        readable += [events] if events >= 0 and len(self._events) < _MOST_EVENTS else []
        ready = wait_for(readable, writable, seconds=_POLL_SECONDS)
        if self._is_signalled:
            self._is_signalled = False
            self._command(json.dumps({"do": "terminate", "host": self._host}).encode() + b"\n")
        if is_read:
            self._receive()
        if events in ready:
            received = os.read(events, _READ)
            self._events += received
            self._is_agent_gone = not received

    def _turn(self) -> None:
        """Pass on what has arrived on both sides, then the files that have changed."""
        self._wait()
        has_events = bool(self._events)
        while (end := self._events.find(b"\n")) >= 0:
            line = bytes(self._events[: end + 1])
            del self._events[: end + 1]
            self._pass_on(line)
        if self._is_agent_gone:
            self._events.clear()
        elif not has_events:
            self._send_growth()
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._send_outputs(at_rest=True)

    def _pass_on(self, line: bytes) -> None:
        """Send an event of the agent, after the files to which it is the end."""
        content = json.loads(line)
        event = content["event"]
        if event in ("ended", "finished"):
            self._send_growth()
            # The end of a host is told before its model is sent, which may be large.
            self._send_outputs(at_rest=False, with_model=event == "finished")
        if event == "ended" and self._was_signalled and content["code"] == 0:
            # A script that saves its state and exits because its machine goes down has not completed.
            line = json.dumps({**content, "code": -signal.SIGTERM}).encode()
        self._is_finished = event == "finished"
        self.send("message", line)

    def _send_growth(self) -> None:
        """Send what was appended to the log, and the usage."""
        folder = JobFolder(self._folder)
        log = self._sender.send_growth(str(folder.log(self._host).relative_to(self._folder)))
        if log and self._prints_log:
            sys.stderr.buffer.write(log)
            sys.stderr.buffer.flush()
        self._sender.send_tree(str(folder.usage_file("").parent.relative_to(self._folder)))

    def _send_outputs(self, *, at_rest: bool, with_model: bool = False) -> None:
        own = checkpoints_path(JobFolder(self._folder).read_job().request.output)
        for path in (contract.OUTPUT_DIR, own, *([contract.MODEL_DIR] if with_model else [])):
            self._sender.send_tree(f"hosts/{self._host}/{path}", at_rest=at_rest)
        self._synced = time.monotonic()


def run(arguments: tuple[str, ...], stream: Stream) -> int:
    """Run one host's agent; return its exit code, 0 for a lost relay. Arguments: job folder [address [--print-log]]."""
    folder, *more = arguments
    host = RemoteHost(Path(folder), stream, prints_log="--print-log" in more)
    try:
        host.send("hello", address=more[0] if more else "", folder=folder)
        return host.run()
    except BrokenPipeError:
        return 0
    except (StreamError, OSError) as error:
        cause = f"the job's files cannot be passed on: {error}"
        sys.stderr.write(f"scriptmode: {cause}\n")
        with suppress(OSError):
            host.fail(cause)
        return 1
