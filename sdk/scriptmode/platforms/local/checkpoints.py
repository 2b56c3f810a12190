"""A job's checkpoints: there before the script starts, and copied to their place while it trains, as the service does.

What a later job finds is then never older than a few seconds, however this one ended. Files are copied once they rest;
what a script removes stays where it was copied to.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scriptmode.errors import PlatformError
from scriptmode.platforms.local import outputs, places
from scriptmode.platforms.local.store import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from scriptmode.platforms.local.sandbox import Sandbox
    from scriptmode.s3 import S3

#: A file that did not change for so long is copied.
REST_SECONDS = 2.0


class Keeper:
    """Copies what changed among the hosts' checkpoints to their place; ``record`` is the file of what is there."""

    def __init__(self, request: Mapping[str, Any], sandboxes: Sequence[Sandbox], record: Path) -> None:
        self._uri = str(request["CheckpointConfig"]["S3Uri"]).rstrip("/")
        self._folders = {sandbox.host: sandbox.checkpoints(request["CheckpointConfig"]) for sandbox in sandboxes}
        self._record = record
        #: What each file was when it was looked at last: its size and time of change.
        self._seen: dict[str, list[int]] = {}

    def restore(self) -> None:
        """Give every host the checkpoints of an earlier job, if there are any; raise `PlatformError`."""
        first, *others = self._folders.values()
        if places.is_file(self._uri):
            place = places.file_path(self._uri)
            if not place.is_dir():
                return
            places.copy(place, first)
        else:
            below = f"{self._uri}/"
            if next(self._bucket.objects(below), None) is None:
                return
            self._bucket.fetch(below, first)
        for folder in others:
            places.copy(first, folder)
        self._write(_signatures(self._collected().files))

    def keep_on(self) -> None:
        """Copy for ever what rests; an error is told once and tried again."""
        told = ""
        while True:
            time.sleep(REST_SECONDS)
            try:
                self._copy(self._rested())
            except (PlatformError, OSError) as error:
                if str(error) != told:
                    told = str(error)
                    sys.stderr.write(f"checkpoints were not copied, which is tried again: {told}\n")
                    sys.stderr.flush()

    def finish(self, say: Callable[[str], None]) -> None:
        """Copy the rest, after the hosts ended; raise `PlatformError`."""
        tree = self._collected()
        for note in tree.notes:
            say(note)
        self._copy(tree.files)

    def _collected(self) -> outputs.Collected:
        return outputs.collect("checkpoints", list(self._folders.items()))

    def _rested(self) -> dict[str, Path]:
        files = self._collected().files
        before, self._seen = self._seen, _signatures(files)
        return {name: files[name] for name, now in self._seen.items() if before.get(name) == now}

    def _copy(self, files: Mapping[str, Path]) -> None:
        there = self._there()
        for name, now in _signatures(files).items():
            if there.get(name) != now:
                self._put(files[name], f"{self._uri}/{name}")
                there[name] = now
                self._write(there)

    def _put(self, file: Path, uri: str) -> None:
        if places.is_file(uri):
            outputs.deliver(file, uri, keep=True)
        else:
            self._bucket.upload_file(file, uri)

    @cached_property
    def _bucket(self) -> S3:
        from scriptmode.s3 import S3

        return S3()

    def _write(self, there: Mapping[str, list[int]]) -> None:
        replace_file(self._record, json.dumps(there).encode(), durable=False)

    def _there(self) -> dict[str, list[int]]:
        with suppress(FileNotFoundError):
            found: dict[str, list[int]] = json.loads(self._record.read_bytes())
            return found
        return {}


def _signatures(files: Mapping[str, Path]) -> dict[str, list[int]]:
    found = {}
    for name, file in files.items():
        # Removed meanwhile, by a script that keeps the newest few.
        with suppress(FileNotFoundError):
            if not file.is_dir():
                status = file.stat()
                found[name] = [status.st_size, status.st_mtime_ns]
    return found
