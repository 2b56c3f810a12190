"""What a job leaves behind: model.tar.gz and output.tar.gz, at the places the request names."""

from __future__ import annotations

import os
import stat
import tarfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError
from scriptmode.platforms.local import places
from scriptmode.platforms.local.durable import Entries, sync_file
from scriptmode.platforms.local.places import copy_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scriptmode.platforms.local.sandbox import Sandbox
    from scriptmode.s3 import S3

    #: Gives the file that a path is to a host, None where it leads out of the host's tree.
    Own = Callable[[Path], Path | None]

#: Trained weights hardly compress; the fastest level costs a few percent of size.
COMPRESSION_LEVEL = 1
MODEL_ARCHIVE = "model.tar.gz"
#: What a file is called, after a dot and its name, until it is whole.
DRAFT_SUFFIX = ".part"
OUTPUT_ARCHIVE = "output.tar.gz"


@dataclass
class Collected:
    """Files of all hosts as one tree: path below the tree -> file; ``notes`` say what is not in it."""

    files: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def destination(request: Mapping[str, Any]) -> str:
    """Give the URI below which a job's artifacts lie."""
    return f"{request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}/output"


def publish(
    request: Mapping[str, Any],
    sandboxes: Sequence[Sandbox],
    folder: Path,
    *,
    with_model: bool,
    say: Callable[[str], None],
) -> str:
    """Pack and deliver what the hosts left; return the model's URI, "" without one.

    What was delivered to a ``file://`` URI is durable once this returns. Archives are packed in ``folder`` and leave it
    when they are delivered: after a failure they are still there.
    """
    compressed = request["OutputDataConfig"].get("CompressionType", "GZIP") == "GZIP"
    base = destination(request)
    entries = Entries()
    entries.make_directory(folder)
    copied = []
    trees = [("output/data", OUTPUT_ARCHIVE, "data", [sandbox.output_data for sandbox in sandboxes])]
    if with_model:
        trees.append(("model", MODEL_ARCHIVE, "model", [sandbox.model for sandbox in sandboxes]))
    for what, archive, plain, roots in trees:
        hosts = [sandbox.host for sandbox in sandboxes]
        tree = collect(what, list(zip(hosts, roots)), {sandbox.host: sandbox.own for sandbox in sandboxes})
        for note in tree.notes:
            say(note)
        if what != "model" and not tree.files:
            continue
        if compressed:
            pack(tree, folder / archive)
            if deliver(folder / archive, base, archive, entries):
                copied.append(folder / archive)
        else:
            _deliver_files(tree, base, plain, entries)
    sync(entries, base)
    for packed in copied:
        packed.unlink()
    if not with_model:
        return ""
    return f"{base}/{MODEL_ARCHIVE}" if compressed else f"{base}/model/"


def _deliver_files(tree: Collected, base: str, plain: str, entries: Entries) -> None:
    for name, file in tree.files.items():
        if not file.is_dir():
            deliver(file, base, f"{plain}/{name}", entries)


def without_model(sandboxes: Sequence[Sandbox]) -> bool:
    """Say whether no host left a file for the model."""
    return not any(files for sandbox in sandboxes for _, _, files in os.walk(sandbox.model))


def collect(what: str, roots: Sequence[tuple[str, Path]], own: Mapping[str, Own] | None = None) -> Collected:
    """Lay the hosts' trees over one another; the first host that has a path wins. Links to files become files.

    ``own`` gives, by host, what a path is to it: `Sandbox.own`.
    """
    tree = Collected()
    owner: dict[str, str] = {}
    for host, root in roots:
        known = (own or {}).get(host, _itself)
        if known(root) != root:
            tree.notes.append(f"{what}: nothing of {host} is taken: {root.name!r} was replaced by a link")
            continue
        for name, found in _entries(root):
            path = known(found)
            if path is None:
                tree.notes.append(f"{what}: {host}'s {name!r} is left out: it is a link out of /opt/ml")
                continue
            taken = next((part for part in _paths(name) if part in tree.files and not tree.files[part].is_dir()), name)
            if trouble := _unfit(path):
                tree.notes.append(f"{what}: {host}'s {name!r} is left out: {trouble}")
            elif taken not in tree.files:
                owner[name] = host
                tree.files[name] = path
            elif not (path.is_dir() and tree.files[taken].is_dir()):
                tree.notes.append(f"{what}: {host}'s {name!r} is left out: {owner[taken]} has {taken!r} too")
    return tree


def pack(tree: Collected, archive: Path) -> None:
    """Write a tar.gz of a tree; owners are left out, so that whoever unpacks it owns the files."""
    draft = archive.with_name(f".{archive.name}")
    with tarfile.open(draft, "w:gz", compresslevel=COMPRESSION_LEVEL) as tar:
        for name, path in tree.files.items():
            status = path.stat()
            member = tarfile.TarInfo(name)
            member.mtime, member.mode = int(status.st_mtime), stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
                continue
            member.size = status.st_size
            with path.open("rb") as file:
                tar.addfile(member, file)
    draft.replace(archive)


def deliver(file: Path, place: str, name: str, entries: Entries) -> bool:
    """Copy a file below a ``file://`` or ``s3://`` URI, whole or not at all; raise `DataError` naming where.

    A file that was copied is durable after `sync` of ``entries``. Return whether there are two of it now.
    """
    uri = f"{place}/{name}"
    if not places.is_file(place):
        bucket().upload_file(file, uri)
    else:
        # The name is as it is: what looks encoded in it is not.
        target = places.file_path(place) / name
        try:
            entries.make_directory(target.parent)
            if target.exists() and target.samefile(file):
                sync_file(target)
                entries.add(target.parent)
                return False
            draft = target.with_name(f".{target.name}{DRAFT_SUFFIX}")
            copy_file(file, draft)
            entries.replace(draft, target)
        except OSError as error:
            raise DataError(f"{uri}: {error}; name another output_path") from error
    return True


def sync(entries: Entries, place: str) -> None:
    """Make what was delivered below a URI durable; raise `DataError`."""
    try:
        entries.sync()
    except OSError as error:
        raise DataError(f"{place}: {error}; name another output_path") from error


@cache
def bucket() -> S3:
    """Give this process's client of S3: it takes longer to make than a small file to store."""
    from scriptmode.s3 import S3

    return S3()


def _itself(path: Path) -> Path:
    return path


def _entries(root: Path) -> list[tuple[str, Path]]:
    """Give every folder and file below ``root``, sorted, folders before what is in them."""
    found = []
    for folder, folders, files in os.walk(root):
        found += [Path(folder, name) for name in (*folders, *files)]
    return sorted((str(path.relative_to(root)), path) for path in found)


def _paths(name: str) -> Iterator[str]:
    """Give a path below the tree and everything above it."""
    yield name
    yield from (str(parent) for parent in Path(name).parents if str(parent) != ".")


def _unfit(path: Path) -> str:
    """Say why something cannot be an artifact; "" when it can."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"it is a link to nothing ({error.strerror})" if path.is_symlink() else str(error)
    if stat.S_ISDIR(mode):
        return "it is a link to a folder" if path.is_symlink() else ""
    return "" if stat.S_ISREG(mode) else "it is not a regular file"
