"""Checkpoint sync: restore checkpoints before the script starts, and upload them while it trains, as the service does.

However a job ends, files that its script completed some seconds before are available to the next job. A file is copied
once it has not changed for `REST_SECONDS`. One that is replaced more often is kept open: it is complete when its name
is another file's. One that the script removes is not removed from the destination.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from scriptmode._core.text.messages import Problem, problem_of
from scriptmode.errors import DataError, DataNotFoundError, PlatformError
from scriptmode_local._data import file_copy, file_uris, regular_files
from scriptmode_local._data.durable import ChangedDirectories, replace_file
from scriptmode_local._data.replaced_files import ReplacedFiles
from scriptmode_local._opt_ml.opt_ml import Sandbox, checkpoints_path
from scriptmode_local._outputs import packed_artifacts
from scriptmode_local._store import shapes
from scriptmode_runtime._files.beneath import EscapeError

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import Output
    from scriptmode_local._store.job_store import JobFolder

    #: By host and name, a file's size, time of change (ns) and inode.
    Signatures = dict[str, dict[str, list[int]]]
    #: By host and name, files to copy whose names other files have by now.
    OpenFiles = dict[tuple[str, str], BinaryIO]

#: A file that has not changed for this time is copied.
REST_SECONDS = 2.0
#: The most replaced files that are open at once, of all hosts.
_MOST_OPEN = 256
_KEPT = {"signatures": {"*": {"*": [int]}}, "owners": {"*": str}}


@dataclass
class SyncRecord:
    """Record of the destination: the signature of each copied file by host and name, and the host that owns a name."""

    signatures: Signatures = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)


class CheckpointSync:
    """Copier of the hosts' changed checkpoints to the job's checkpoint URI; ``record`` is the file of the `SyncRecord`.

    A name is owned by the first host that changed it. A file of that name on another host is left out, with a line in
    the log unless both hosts are of ``copies``, those that save the same.
    """

    def __init__(
        self, output: Output, sandboxes: Sequence[Sandbox], record: Path, *, copies: frozenset[str] = frozenset()
    ) -> None:
        self._uri = (output.checkpoint_uri or "").rstrip("/")
        self._sandboxes = {sandbox.host: sandbox for sandbox in sandboxes}
        self._path = checkpoints_path(output)
        self._record = record
        self._replaced = {host: ReplacedFiles(_MOST_OPEN // len(sandboxes) or 1) for host in self._sandboxes}
        self._copies = copies

    @property
    def has_restored(self) -> bool:
        """Whether `restore` has ended, in this process or in an earlier one: then there is a record."""
        return self._record.exists()

    def restore(self) -> None:
        """Copy the checkpoints of an earlier job, if any, to every host; raise `PlatformError`."""
        first, *others = (sandbox.base / self._path for sandbox in self._sandboxes.values())
        if file_uris.is_file(self._uri):
            source = file_uris.file_path(self._uri)
            if source.is_dir():
                file_copy.copy_path(source, first)
        else:
            self._fetch(first)
        for draft in first.rglob(f"{packed_artifacts.DRAFT_PREFIX}*"):
            # From a job that was killed while copying.
            draft.unlink()
        for folder in others:
            file_copy.copy_path(first, folder)
        self._write(SyncRecord(_signatures(self._trees())))

    def _fetch(self, folder: Path) -> None:
        from scriptmode._core.aws.s3_errors import code_of

        try:
            packed_artifacts.s3_client().fetch(f"{self._uri}/", folder)
        except DataNotFoundError as error:
            # Without objects nothing is restored, but without a bucket no checkpoint could be uploaded.
            if code_of(error) == "NoSuchBucket":
                raise

    def run(self) -> None:
        """Copy complete files in an endless loop; log an error once and retry."""
        seen: Signatures = {}
        logged: Problem | None = None
        while True:
            time.sleep(REST_SECONDS)
            try:
                before, seen = seen, _signatures(self._trees())
                complete, earlier = self._complete(before, seen)
                with ExitStack() as stack:
                    for file in earlier.values():
                        stack.enter_context(file)
                    problem = self._copy(complete, earlier)
            except (OSError, ValueError) as error:
                problem = problem_of(error)
            if problem and problem != logged:
                logged = problem
                sys.stderr.write(f"checkpoints were not copied, which is tried again: {logged}\n")
                sys.stderr.flush()

    def _complete(self, before: Signatures, now: Signatures) -> tuple[Signatures, OpenFiles]:
        """Return the signatures of the complete files, which did not change or were replaced; the latter are open."""
        complete: Signatures = {host: {} for host in now}
        earlier: OpenFiles = {}
        for host, files in now.items():
            for name, mine in files.items():
                opened = partial(self._sandboxes[host].open_file, f"{self._path}/{name}")
                if file := self._replaced[host].look(name, mine[-1], opened):
                    earlier[host, name] = file
                    complete[host][name] = _signature(os.fstat(file.fileno()))
                elif before.get(host, {}).get(name) == mine:
                    complete[host][name] = mine
            self._replaced[host].keep(files.keys())
        return complete, earlier

    def finish(self, say: Callable[[str], None]) -> None:
        """Copy the remaining files after the hosts ended; raise `DataError`."""
        trees = self._trees()
        for tree in trees.values():
            for note in tree.notes:
                say(note)
        now = _signatures(trees)
        if problem := self._copy(now, {}):
            raise DataError(problem.text, advice=problem.advice)
        kept = self._read()
        for host, files in now.items():
            for name, signature in files.items():
                owner = kept.owners.get(name, host)
                is_other = owner != host and not {owner, host} <= self._copies
                if is_other and kept.signatures.get(host, {}).get(name) != signature:
                    say(f"checkpoints: {host}'s {name!r} is left out: {owner} has {name!r} too")

    def _copy(self, files: Signatures, earlier: OpenFiles) -> Problem | None:
        kept = self._read()
        # In the order of the hosts, of which the first owns a name of two.
        changed = [
            (signature[1], host, name, signature)
            for host in self._sandboxes
            for name, signature in files[host].items()
            if kept.signatures.get(host, {}).get(name) != signature and kept.owners.setdefault(name, host) == host
        ]
        problem: Problem | None = None
        entries, copied = ChangedDirectories(), []
        # The oldest first, because a file that names others is written after them.
        for _, host, name, signature in sorted(changed):
            try:
                self._put(host, name, entries, earlier.get((host, name)))
            except FileNotFoundError:  # noqa: PERF203 - the others are copied nevertheless
                # Removed by a script that keeps only the newest checkpoints.
                continue
            except (PlatformError, OSError, ValueError) as error:
                problem = problem_of(error)
                # A file that was written later may name this one, unless a directory has its name, or a file that of
                # its directory: then it is never copied.
                if not isinstance(error.__cause__, (IsADirectoryError, NotADirectoryError, FileExistsError)):
                    break
            else:
                copied.append((host, name, signature))
        try:
            packed_artifacts.sync_delivered(entries, self._uri)
        except PlatformError as error:
            return problem_of(error)
        for host, name, signature in copied:
            kept.signatures.setdefault(host, {})[name] = signature
        if changed:
            self._write(kept)
        return problem

    def _put(self, host: str, name: str, entries: ChangedDirectories, earlier: BinaryIO | None = None) -> None:
        try:
            file = earlier or self._sandboxes[host].open_file(f"{self._path}/{name}")
        except EscapeError as error:
            raise DataError(
                f"{host}'s checkpoint {name!r} became a link out of its directory", advice="write it in the directory"
            ) from error
        with file:
            packed_artifacts.deliver_file(file, self._uri, name, entries)

    def _trees(self) -> dict[str, packed_artifacts.ArtifactTree]:
        return {
            host: packed_artifacts.collect_files("checkpoints", [sandbox], self._path)
            for host, sandbox in self._sandboxes.items()
        }

    def _write(self, kept: SyncRecord) -> None:
        replace_file(self._record, json.dumps(asdict(kept)).encode(), durable=False)

    def _read(self) -> SyncRecord:
        """Return the record; an empty one if it cannot be read, so that all files are copied again."""
        try:
            content = regular_files.read_json(self._record)
            shapes.validate_shape(content, _KEPT, "")
            return SyncRecord(**content)
        except (OSError, ValueError, TypeError):
            return SyncRecord()


def create_sync(folder: JobFolder, job: JobRequest, sandboxes: Sequence[Sandbox]) -> CheckpointSync | None:
    """Return the copier of a job's checkpoints; ``None`` for a job without a checkpoint URI."""
    if not job.output.checkpoint_uri:
        return None
    hosts = packed_artifacts.chief_first(job, sandboxes)
    return CheckpointSync(job.output, hosts, record_path(folder), copies=frozenset(packed_artifacts.trainers(job)))


def record_path(folder: JobFolder) -> Path:
    """Return the path of the record of what was copied; nothing is copied from hosts without it."""
    return folder.channels / "checkpoints.json"


def _signatures(trees: Mapping[str, packed_artifacts.ArtifactTree]) -> Signatures:
    """Return the signatures of every host's files, by their names."""
    return {
        host: {name: _signature(file.status) for name, file in tree.files.items() if not file.is_directory}
        for host, tree in trees.items()
    }


def _signature(status: os.stat_result) -> list[int]:
    """Return a file's size, modification time (ns) and inode."""
    return [status.st_size, status.st_mtime_ns, status.st_ino]
