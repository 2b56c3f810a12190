"""A job's checkpoints: there before the script starts, and copied to their place while it trains, as the service does.

However a job ends, what its script had finished some seconds before is there for the next one. Files are copied once
they rest; what a script removes stays where it was copied to.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.data import file_copy, file_uris, regular_files
from scriptmode.errors import DataError, DataNotFoundError, PlatformError
from scriptmode.platforms.local.outputs import artifacts
from scriptmode.platforms.local.store import shapes
from scriptmode.platforms.local.system.durable import Entries, replace_file
from scriptmode.platforms.opt_ml import checkpoints_path
from scriptmode_runtime.files.beneath import EscapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from scriptmode.platforms.opt_ml import Sandbox

    #: By host and name, a file's size and time of change (ns).
    Signatures = dict[str, dict[str, list[int]]]

#: A file that did not change for so long is copied.
REST_SECONDS = 2.0
_KEPT = {"signatures": {"*": {"*": [int]}}, "owners": {"*": str}}


@dataclass
class SyncRecord:
    """What is at the checkpoints' place: by host and name what was copied from or to it, and whose each name is."""

    signatures: Signatures = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)


class CheckpointSync:
    """Copies what changed among the hosts' checkpoints to their place; ``record`` is the file of what was copied.

    A name belongs to the first host that changed it: what another one has of it is left out, and told.
    """

    def __init__(self, request: Mapping[str, Any], sandboxes: Sequence[Sandbox], record: Path) -> None:
        self._uri = str(request["CheckpointConfig"]["S3Uri"]).rstrip("/")
        self._folders = {sandbox.host: sandbox.checkpoints(request["CheckpointConfig"]) for sandbox in sandboxes}
        self._sandboxes = {sandbox.host: sandbox for sandbox in sandboxes}
        self._path = checkpoints_path(request["CheckpointConfig"])
        self._record = record

    def restore(self) -> None:
        """Give every host the checkpoints of an earlier job, if there are any; raise `PlatformError`."""
        first, *others = self._folders.values()
        if file_uris.is_file(self._uri):
            place = file_uris.file_path(self._uri)
            if place.is_dir():
                file_copy.copy_path(place, first)
        else:
            self._fetch(first)
        for draft in first.rglob(f".*{artifacts.DRAFT_SUFFIX}"):
            # Of a job that was killed as it copied.
            draft.unlink()
        for folder in others:
            file_copy.copy_path(first, folder)
        self._write(SyncRecord(_signatures(self._trees())))

    def _fetch(self, folder: Path) -> None:
        from scriptmode.aws.s3_errors import code_of

        try:
            artifacts.s3_client().fetch(f"{self._uri}/", folder)
        except DataNotFoundError as error:
            # Nothing there is nothing to restore; without a bucket nothing could be kept.
            if code_of(error) == "NoSuchBucket":
                raise

    def run(self) -> None:
        """Copy for ever what rests; an error is told once and tried again."""
        seen: Signatures = {}
        told = ""
        while True:
            time.sleep(REST_SECONDS)
            try:
                before, seen = seen, _signatures(self._trees())
                said = self._copy(_common(before, seen))
            except (OSError, ValueError) as error:
                said = str(error)
            if said and said != told:
                told = said
                sys.stderr.write(f"checkpoints were not copied, which is tried again: {told}\n")
                sys.stderr.flush()

    def finish(self, say: Callable[[str], None]) -> None:
        """Copy the rest, after the hosts ended; raise `DataError`."""
        trees = self._trees()
        for note in (note for tree in trees.values() for note in tree.notes):
            say(note)
        now = _signatures(trees)
        if said := self._copy(now):
            raise DataError(said)
        kept = self._read()
        for host, files in now.items():
            for name, signature in files.items():
                owner = kept.owners.get(name, host)
                if owner != host and kept.signatures.get(host, {}).get(name) != signature:
                    say(f"checkpoints: {host}'s {name!r} is left out: {owner} has {name!r} too")

    def _copy(self, files: Signatures) -> str:
        """Copy those that changed, the oldest first; say why something was not copied, "" when all was."""
        kept = self._read()
        changed = [
            (signature[1], host, name, signature)
            for host, own in files.items()
            for name, signature in own.items()
            if kept.signatures.get(host, {}).get(name) != signature and kept.owners.get(name, host) == host
        ]
        said, entries, copied = "", Entries(), []
        # What names other files was written after them. A host that comes first takes what two have.
        by_host = sorted(changed, key=lambda each: list(self._folders).index(each[1]))
        for _, host, name, _ in by_host:
            kept.owners.setdefault(name, host)
        for _, host, name, signature in sorted(changed):
            if kept.owners[name] != host:
                continue
            try:
                self._put(host, name, entries)
            except FileNotFoundError:
                # Removed meanwhile, by a script that keeps the newest few.
                continue
            except (PlatformError, OSError, ValueError) as error:
                # What was written later may name it.
                said = str(error)
                break
            else:
                copied.append((host, name, signature))
        try:
            artifacts.sync_delivered(entries, self._uri)
        except PlatformError as error:
            return str(error)
        for host, name, signature in copied:
            kept.signatures.setdefault(host, {})[name] = signature
        if changed:
            self._write(kept)
        return said

    def _put(self, host: str, name: str, entries: Entries) -> None:
        try:
            file = self._sandboxes[host].open_file(f"{self._path}/{name}")
        except EscapeError as error:
            raise DataError(
                f"{host}'s checkpoint {name!r} became a link out of its folder; write it in the folder"
            ) from error
        with file:
            artifacts.deliver_file(file, self._uri, name, entries)

    def _trees(self) -> dict[str, artifacts.ArtifactTree]:
        """Give what each host has."""
        return {
            host: artifacts.collect_files("checkpoints", [sandbox], self._path)
            for host, sandbox in self._sandboxes.items()
        }

    def _write(self, kept: SyncRecord) -> None:
        replace_file(self._record, json.dumps(asdict(kept)).encode(), durable=False)

    def _read(self) -> SyncRecord:
        """Return what was copied; of a record that cannot be read nothing is known, and all is copied again."""
        try:
            content = regular_files.read_json(self._record)
            shapes.validate_shape(content, _KEPT, "")
            return SyncRecord(**content)
        except (OSError, ValueError, TypeError):
            return SyncRecord()


def _signatures(trees: Mapping[str, artifacts.ArtifactTree]) -> Signatures:
    """Give the size and time of change (ns) of every host's files, by their names."""
    found: Signatures = {host: {} for host in trees}
    for host, tree in trees.items():
        for name, file in tree.files.items():
            if not file.is_directory:
                found[host][name] = [file.status.st_size, file.status.st_mtime_ns]
    return found


def _common(before: Signatures, now: Signatures) -> Signatures:
    """Give the files that did not change in between."""
    return {
        host: {name: mine for name, mine in files.items() if before.get(host, {}).get(name) == mine}
        for host, files in now.items()
    }
