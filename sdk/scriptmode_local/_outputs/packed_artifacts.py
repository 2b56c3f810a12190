"""The artifacts of a job: model.tar.gz and output.tar.gz, packed and delivered to the job's output path."""

from __future__ import annotations

import hashlib
import operator
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_local._data.durable import ChangedDirectories, sync_file
from scriptmode_local._data.file_copy import copy_descriptor
from scriptmode_local._system import full_disk
from scriptmode_runtime import contract
from scriptmode_runtime._files import directory_tree
from scriptmode_runtime._files.archive import DEEPEST, MOST_MEMBERS
from scriptmode_runtime._files.beneath import EscapeError

if TYPE_CHECKING:
    from scriptmode._core.aws.s3 import S3
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_runtime._files.directory_tree import Entry

#: The fastest level: trained weights hardly compress, so it costs only a few percent of size.
COMPRESSION_LEVEL = 1
MODEL_ARCHIVE = "model.tar.gz"
#: The name of a file that is not complete begins with it.
DRAFT_PREFIX = ".scriptmode-part-"
OUTPUT_ARCHIVE = "output.tar.gz"
#: Bytes of two files that are compared at once.
_PART = 1024 * 1024


class HostFile(NamedTuple):
    """A file or directory of a host: its path in the host's tree, and its status when it was found."""

    sandbox: Sandbox
    path: str
    status: os.stat_result

    @property
    def is_directory(self) -> bool:
        """Return whether it is a directory."""
        return stat.S_ISDIR(self.status.st_mode)

    def open(self) -> BinaryIO:
        """Open the file for reading; raise ``OSError`` if the host replaced it by something else."""
        return self.sandbox.open_file(self.path)


@dataclass
class ArtifactTree:
    """Files of all hosts as one tree, by path below its root; ``notes`` describes what was left out."""

    files: dict[str, HostFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def artifacts_uri(job: JobRequest) -> str:
    """Return the URI below which a job's artifacts are delivered."""
    return f"{(job.output.path or '').rstrip('/')}/{job.name}/output"


def publish_artifacts(
    job: JobRequest, sandboxes: Sequence[Sandbox], folder: Path, *, with_model: bool, say: Callable[[str], None]
) -> str:
    """Pack and deliver the hosts' artifacts; return the model's URI, "" without one.

    Files delivered to a ``file://`` URI are durable once this returns. Archives are packed in ``folder`` and removed
    from it when they are delivered, so after a failure they are still there.
    """
    compressed = job.output.compress
    base = artifacts_uri(job)
    entries = ChangedDirectories()
    entries.make_directory(folder)
    copied = []
    hosts, copies = chief_first(job, sandboxes), frozenset(trainers(job))
    trees = [(contract.OUTPUT_DATA_DIR, OUTPUT_ARCHIVE, "data")]
    if with_model:
        trees.append((contract.MODEL_DIR, MODEL_ARCHIVE, "model"))
    for what, archive, plain in trees:
        tree = collect_files(what, hosts, what, copies=copies if plain == "model" else frozenset())
        for note in tree.notes:
            say(note)
        if what != "model" and not tree.files:
            continue
        if not compressed:
            for name, entry in tree.files.items():
                if not entry.is_directory:
                    with entry.open() as opened:
                        deliver_file(opened, base, f"{plain}/{name}", entries)
            continue
        _require_few(tree, archive)
        pack_archive(tree, folder / archive)
        with (folder / archive).open("rb") as file:
            if deliver_file(file, base, archive, entries):
                copied.append(folder / archive)
    sync_delivered(entries, base)
    for packed in copied:
        packed.unlink()
    model = f"{base}/{MODEL_ARCHIVE}" if compressed else f"{base}/model/"
    return model if with_model else ""


def _require_few(tree: ArtifactTree, archive: str) -> None:
    """Raise `DataError` for more files than an archive may have to be unpacked again; packing them takes minutes."""
    if len(tree.files) > MOST_MEMBERS:
        raise DataError(
            f"{archive} would hold {len(tree.files):,} files and directories, and the most is {MOST_MEMBERS:,}",
            advice="let the script write fewer, larger files, or give the job disable_output_compression=True",
        )


def is_model_empty(sandboxes: Sequence[Sandbox]) -> bool:
    """Return whether no host wrote a file to its model directory."""
    return all(
        entry.is_directory
        for sandbox in sandboxes
        for entry in _entries(sandbox, contract.MODEL_DIR, lambda _: None, lambda *_: None)
    )


def trainers(job: JobRequest) -> list[str]:
    """Return the hosts that train one model together, a chief first; none without a distribution.

    Each of them may save the model, in archives with times of its own: their files of one name are copies.
    """
    if not any(contract.enabled(job.hyperparameters.get(switch, "")) for switch in contract.DISTRIBUTION_SWITCHES):
        return []
    hosts = {group.name: group.hosts for group in job.resources.host_groups}
    roles = job.parameter(contract.PARAMETER_SERVER_ROLES) or job.parameter(contract.MULTI_WORKER_MIRRORED_ROLES)
    together = job.parameter(contract.DISTRIBUTION_INSTANCE_GROUPS) or list(hosts)
    named = [roles.get(role, []) for role in contract.ROLES[:3]] if isinstance(roles, dict) else [together]
    groups = [group for names in named for group in (names if isinstance(names, list) else [names])]
    servers = job.parameter(contract.PARAMETER_SERVER_HOSTS)
    # The last hosts are servers alone.
    end = -servers if isinstance(servers, int) else None
    return [host for group in groups for host in hosts.get(str(group), ())][:end]


def chief_first(job: JobRequest, sandboxes: Sequence[Sandbox]) -> list[Sandbox]:
    """Return the sandboxes of a job's hosts in the order in which their files count."""
    order = {host: number for number, host in enumerate(trainers(job))}
    return sorted(sandboxes, key=lambda sandbox: order.get(sandbox.host, len(order)))


def collect_files(
    what: str, sandboxes: Sequence[Sandbox], root: str, *, copies: frozenset[str] = frozenset()
) -> ArtifactTree:
    """Merge the hosts' trees below the directory ``root``; the first host that has a path wins. Links become files.

    A note says which file is left out, unless it equals the one that wins, or both hosts are of ``copies``.
    """
    tree = ArtifactTree()
    owner: dict[str, str] = {}
    for sandbox in sandboxes:
        host = sandbox.host

        def left_out(name: str, why: str, host: str = host) -> None:
            tree.notes.append(f"{what}: {host}'s {name!r} is left out: {why}")

        statuses = {entry.path: entry.status for entry in _entries(sandbox, root, tree.notes.append, left_out)}
        for name in sorted(statuses):
            file = _followed(HostFile(sandbox, os.path.join(root, name), statuses[name]))  # noqa: PTH118
            paths = (name, *map(str, PurePath(name).parents))
            taken = next((part for part in paths if part in tree.files and not tree.files[part].is_directory), name)
            if isinstance(file, Problem):
                left_out(name, file.text)
            elif taken not in tree.files:
                owner[name] = host
                tree.files[name] = file
            elif not _is_copy(file, tree.files[taken], is_expected=taken == name and {host, owner[name]} <= copies):
                left_out(name, f"{owner[taken]} has {taken!r} too")
    return tree


def _is_copy(file: HostFile, other: HostFile, *, is_expected: bool) -> bool:
    """Return whether nothing is lost without ``file``: both are directories, or files that are the same."""
    if file.is_directory or other.is_directory:
        return file.is_directory and other.is_directory
    if is_expected or file.status.st_size != other.status.st_size:
        return is_expected
    # One that cannot be read, or was replaced, is none.
    with suppress(OSError), file.open() as one, other.open() as two:
        parts = (iter(partial(opened.read, _PART), b"") for opened in (one, two))
        return all(map(operator.eq, *parts))
    return False


def pack_archive(tree: ArtifactTree, archive: Path) -> None:
    """Write a tar.gz of a tree; owners are left out, so that the user who unpacks it owns the files."""
    draft = archive.with_name(f".{archive.name}")
    # Opening a FIFO of that name would wait for a reader.
    draft.unlink(missing_ok=True)
    try:
        with tarfile.open(draft, "w:gz", compresslevel=COMPRESSION_LEVEL) as tar:
            for name, file in tree.files.items():
                _add_member(tar, name, file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    draft.replace(archive)


def _add_member(tar: tarfile.TarFile, name: str, file: HostFile) -> None:
    member = tarfile.TarInfo(name)
    with nullcontext() if file.is_directory else file.open() as opened:
        status = os.fstat(opened.fileno()) if opened else file.status
        member.mtime, member.mode = int(status.st_mtime), stat.S_IMODE(status.st_mode)
        if opened:
            member.size = status.st_size
        else:
            member.type = tarfile.DIRTYPE
        tar.addfile(member, opened)


def deliver_file(file: BinaryIO, base: str, name: str, entries: ChangedDirectories) -> bool:
    """Copy an open file below a ``file://`` or ``s3://`` URI, completely or not at all; raise `DataError`.

    A copied file is durable after `sync_delivered`. Returns False if the file was at its destination already.
    """
    uri = f"{base}/{name}"
    descriptor = file.fileno()
    if not file_uris.is_file(base):
        s3_client().upload_file(Path(f"/proc/self/fd/{descriptor}"), uri)
    else:
        # The name is used literally: it is not percent-encoded, even if it looks so.
        target = file_uris.file_path(base) / name
        draft = draft_of(target)
        try:
            entries.make_directory(target.parent)
            if target.exists() and os.path.samestat(target.stat(), os.fstat(descriptor)):
                sync_file(target)
                entries.add(target.parent)
                return False
            # From a job that was killed while copying, or a link that a script created.
            draft.unlink(missing_ok=True)
            with draft.open("xb") as copy:
                copy_descriptor(descriptor, copy.fileno())
            entries.replace(draft, target)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            if full_disk.is_full(error):
                raise full_disk.full_disk_error(error, target.parent, "name another output_path") from error
            raise DataError(f"{uri}: {error}", advice="name another output_path") from error
    return True


def remove_drafts(job: JobRequest, folder: Path) -> None:
    """Remove what a killed agent left of archives that it packed in ``folder`` or delivered to a ``file://`` URI."""
    base = artifacts_uri(job)
    delivered = file_uris.file_path(base) if file_uris.is_file(base) else None
    for archive in (MODEL_ARCHIVE, OUTPUT_ARCHIVE):
        (folder / f".{archive}").unlink(missing_ok=True)
        if delivered:
            draft_of(delivered / archive).unlink(missing_ok=True)


def draft_of(target: Path) -> Path:
    """Return the path of a file until it is complete; its name is as short for the longest one."""
    return target.with_name(f"{DRAFT_PREFIX}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")


def sync_delivered(entries: ChangedDirectories, base: str) -> None:
    """Flush the delivered files below a URI to the disk; raise `DataError`."""
    try:
        entries.sync()
    except OSError as error:
        raise DataError(f"{base}: {error}", advice="name another output_path") from error


@cache
def s3_client() -> S3:
    """Return this process's S3 client; creating one takes longer than storing a small file."""
    from scriptmode._core.aws.s3 import S3

    return S3()


def _entries(
    sandbox: Sandbox, root: str, note: Callable[[str], None], left_out: Callable[[str, str], None]
) -> Iterator[Entry]:
    is_noted = False
    try:
        with sandbox.tree(root) as directory:
            for entry in directory_tree.walk(directory, failed=lambda path, error: left_out(path, str(error.strerror))):
                if len(entry.above) <= DEEPEST:
                    yield entry
                elif not is_noted:
                    is_noted = True
                    left_out("/".join(entry.above[:DEEPEST]), f"its files more than {DEEPEST} directories deep")
    except FileNotFoundError:
        return
    except NotADirectoryError:
        note(f"{root}: files of {sandbox.host} are left out: the directory was replaced by a link or a file")


def _followed(file: HostFile) -> HostFile | Problem:
    """Return a file or directory, or the file that a link leads to; a problem if it cannot be an artifact."""
    if stat.S_ISLNK(file.status.st_mode):
        try:
            file = file._replace(status=file.sandbox.status(file.path))
        except EscapeError:
            return Problem(f"it is a link out of {file.sandbox.root}")
        except OSError as error:
            return Problem(f"it is a link to nothing ({error.strerror})")
        if file.is_directory:
            return Problem("it is a link to a directory")
    return file if file.is_directory or stat.S_ISREG(file.status.st_mode) else Problem("it is not a regular file")
