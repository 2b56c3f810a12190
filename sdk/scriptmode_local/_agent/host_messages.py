"""The messages between a job's agent and the agents of its hosts: JSON objects, one in a line.

Commands, on a host's agent's standard input; end of file means that the job's agent is gone:

=========================================  =============================================================================
``{"do": "stage"}``                        Stage the inputs and make the mounts; answered by ``staged`` or ``failed``.
``{"do": "train", "left": 9.5}``           Start the hosts, which have ``left`` seconds (without it: any time), and
                                           serve their inputs; answered by ``started`` or ``failed``.
``{"do": "terminate", "host": "algo-1"}``  Send SIGTERM to a host's ``train``.
``{"do": "kill", "host": "algo-1"}``       Kill every process of a host.
``{"do": "end"}``                          End everything, unmount, send ``finished`` and exit.
=========================================  =============================================================================

Events, on its standard output:

============  ==========================================================================================================
``staged``    Every input is in place.
``started``   Every host was started; ``processes``: the identities of the agent's process and of those of the hosts.
``progress``  ``channels``: the fields of each `ChannelProgress` of its hosts so far. Sent when it changed.
``waiting``   ``message``: what the host waits for before it can be prepared; "" once it has begun. Sent by agents that
              were started with ``waits``.
``alive``     Every `ALIVE_SECONDS`, so that an agent is missed that cannot tell its end.
``log``       ``text`` is for the log of ``host``.
``failed``    The job fails: the fields of a `Failure`, and ``kind``, the service's name of its kind. Sent once at most.
``ended``     ``host`` ended with ``code`` (``-n`` for signal n); ``machine_failure``: `Fleet.explain_end`; ``overdue``:
              its agent ended it, because it had no time left.
``finished``  ``problems``: what could not be ended; ``misplaced``: a `Problem` of output outside the sandboxes, "" for
              none. The last event.
============  ==========================================================================================================

A host's agent sends ``failed`` for an input before ``ended`` of a host that lost it, and the last progress before the
``ended`` of the last host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from scriptmode_local._store.shapes import PROCESSES, PROGRESS, shortened_repr, validate_shape

_COMMANDS: Mapping[str, object] = {
    "stage": {},
    "train": {"left": float},
    "terminate": {"host!": str},
    "kill": {"host!": str},
    "end": {},
}
_EVENTS: Mapping[str, object] = {
    "staged": {},
    "started": {"processes!": PROCESSES},
    "progress": {"channels!": PROGRESS},
    "waiting": {"message!": str},
    "alive": {},
    "log": {"host!": str, "text!": str},
    "failed": {"kind!": str, "failure!": {"cause!": str}},
    "ended": {"host!": str, "code!": int, "machine_failure!": str, "overdue": bool},
    "finished": {"problems!": [str], "misplaced!": str},
}
#: The message of ``waiting`` of a host that could be prepared if the others were there.
OTHER_HOSTS = "the other hosts"
#: Interval of the event ``alive``.
ALIVE_SECONDS = 5.0
#: The bytes of one turn, about: more than a pipe holds, so that all that an agent wrote before its end is read, and few
#: enough for a writer without pause to leave time for everything else.
_TURN = 256 << 10
_READ = 64 << 10
#: Messages of one turn, of which there are several a second. A pipe holds as many of the usual length, those that an
#: agent writes while the reader is stopped.
_FLOOD = 1000
#: No message is as long: a failure has some thousand characters, and a job some hundred channels.
_LONGEST = 4 << 20


class UnreadableMessageError(Exception):
    """Error for a line that is not a message."""


class MessageReader:
    """Reader of the messages of a pipe, which it makes non-blocking; ``key`` is ``"do"`` or ``"event"``."""

    def __init__(self, descriptor: int, key: str) -> None:
        self.descriptor = descriptor
        #: Whether the other end was closed.
        self.is_closed = False
        #: Whether the last turn had more messages than one that works, or only waits, writes meanwhile.
        self.is_flooded = False
        self._key = key
        self._rest = b""
        os.set_blocking(descriptor, False)

    def read(self) -> list[Any]:
        """Return the messages that have arrived, as far as one turn takes them.

        Raises `UnreadableMessageError` for another line.
        """
        received, left = [self._rest], _TURN
        with suppress(BlockingIOError):
            while not self.is_closed and left > 0:
                received.append(os.read(self.descriptor, _READ))
                left -= len(received[-1])
                self.is_closed = not received[-1]
        *lines, self._rest = b"".join(received).split(b"\n")
        self.is_flooded = left <= 0 or len(lines) > _FLOOD
        if len(self._rest) > _LONGEST:
            raise UnreadableMessageError(f"{shortened_repr(self._rest[:100])} does not end")
        return [parse(line, self._key) for line in lines]


def parse(line: bytes, key: str) -> Any:
    """Return the message of a line; ``key`` is ``"do"`` or ``"event"``. Raises `UnreadableMessageError`."""
    try:
        message = json.loads(line)
        validate_shape(message, {f"{key}!": str}, "")
        validate_shape(message, (_COMMANDS if key == "do" else _EVENTS)[message[key]], "")
    except (LookupError, ValueError, RecursionError) as error:
        raise UnreadableMessageError(f"{shortened_repr(line)}: {error}") from error
    return message


def send(descriptor: int, **message: object) -> None:
    """Write a message to a pipe; raise ``BrokenPipeError`` if nothing reads it any more."""
    line = json.dumps(message).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]
