"""File mode: a job's inputs, copied once into its folder and linked into every host's channel folders.

The copy stands between the script and the user's files: whatever a script does to its input, the originals stay as
they are. Hosts share the copy through hard links, so more hosts cost no more space; the shared files are read-only, so
one host does not write into another's input by accident (a script run by root can). Each host's folders are its own:
files added, removed or replaced there are seen nowhere else.
"""

from __future__ import annotations

import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError, PlatformError
from scriptmode.platforms.local import cluster, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from scriptmode.platforms.local.sandbox import Sandbox

READ_ONLY = 0o444
PARALLEL_DOWNLOADS = 8
#: The kernel copies this much before it looks whether the process was killed.
COPY_CHUNK = 16 * 1024 * 1024


@dataclass(frozen=True)
class Item:
    """One object of a channel: its path below the channel's folder, and how it is fetched."""

    name: str
    fetch: Callable[[Path], None]


def stage(request: Mapping[str, Any], sandboxes: Sequence[Sandbox], folder: Path) -> None:
    """Fill every host's channels; ``folder`` holds the copies. Raise `DataError` naming channel, URI and cause."""
    staged: dict[str, list[str]] = {}
    for channel in request.get("InputDataConfig", ()):
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        try:
            if uri not in staged:
                staged[uri] = _fetch(uri, folder / str(len(staged)))
            _distribute(request, channel, sandboxes, staged[uri], folder / str(list(staged).index(uri)))
        except (PlatformError, OSError) as error:
            raise DataError(f"channel {channel['ChannelName']!r}, {uri}: {_cause(uri, error)}") from error


def restore_checkpoints(request: Mapping[str, Any], sandboxes: Sequence[Sandbox]) -> None:
    """Give every host the checkpoints an earlier job saved at CheckpointConfig's place, if there are any."""
    config = request.get("CheckpointConfig")
    if config is None:
        return
    source = places.file_path(config["S3Uri"])
    if source.is_dir():
        for sandbox in sandboxes:
            for name, path in _files(source):
                target = sandbox.checkpoints(config) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                copy(path, target)


def shard(names: Sequence[str], seed: int | None, count: int) -> list[list[str]]:
    """Deal objects out to ``count`` hosts in turn, shuffled before when there is a seed."""
    order = list(names)
    if seed is not None:
        random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    return [order[host::count] for host in range(count)]


def copy(source: Path, target: Path) -> None:
    """Copy a file's bytes; file systems that can share blocks do."""
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            while os.copy_file_range(reader.fileno(), writer.fileno(), COPY_CHUNK):
                pass
        except (AttributeError, OSError):
            reader.seek(0)
            writer.seek(0)
            writer.truncate()
            shutil.copyfileobj(reader, writer, 1024 * 1024)


def _fetch(uri: str, folder: Path) -> list[str]:
    """Copy everything a URI names into ``folder``; give the names in order."""
    folder.mkdir(parents=True)
    names: list[str] = []
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        waiting = []
        for item in _items(uri):
            target = folder / item.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise DataError(f"two objects would both become {item.name!r}")
            target.touch()
            names.append(item.name)
            waiting.append(pool.submit(_fetch_one, item, target))
        for future in waiting:
            future.result()
    if not names:
        raise DataError("there is nothing in it" if places.is_file(uri) else "no object's key begins with it")
    return names


def _fetch_one(item: Item, target: Path) -> None:
    item.fetch(target)
    target.chmod(READ_ONLY)


def _items(uri: str) -> Iterator[Item]:
    if places.is_file(uri):
        for name, path in _files(places.file_path(uri)):
            yield Item(name, _copier(path))
        return
    from scriptmode import s3

    store = s3.S3()
    prefix = s3.parse(uri).key
    for found in store.objects(uri):
        # A key that ends with a slash is what consoles make of a folder: it has no content.
        if not found.location.key.endswith("/"):
            yield Item(channel_name(prefix, found.location.key), _downloader(store, found))


def channel_name(prefix: str, key: str) -> str:
    """Give an object's path below its channel: its key after the prefix, and never less than the key's last part.

    Where the prefix ends within a name (``data/part`` for ``data/part-1.csv``) that name is kept whole.
    """
    rest = key[len(prefix) :]
    if rest.startswith("/") and prefix:
        name = rest[1:]
    elif prefix.endswith("/") or not prefix:
        name = rest
    else:
        name = prefix.rpartition("/")[2] + rest
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise DataError(f"the key {key!r} cannot be a file's path; rename the object")
    return name


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Give a file, or every file below a folder in the order S3 would list them, links followed."""
    if not path.is_dir():
        yield path.name, path
        return
    found: list[tuple[str, Path]] = []
    seen = set()
    for root, folders, files in os.walk(path, followlinks=True, onerror=_raise):
        identity = os.path.realpath(root)
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        for file in files:
            whole = Path(root, file)
            if whole.is_file() or whole.is_symlink():
                found.append((str(whole.relative_to(path)), whole))
    yield from sorted(found, key=lambda entry: os.fsencode(entry[0]))


def _distribute(
    request: Mapping[str, Any],
    channel: Mapping[str, Any],
    sandboxes: Sequence[Sandbox],
    names: Sequence[str],
    copies: Path,
) -> None:
    hosts = cluster.channel_hosts(request, channel)
    receivers = [sandbox for sandbox in sandboxes if sandbox.host in hosts]
    sharded = channel["DataSource"]["S3DataSource"].get("S3DataDistributionType") == "ShardedByS3Key"
    seed = channel.get("ShuffleConfig", {}).get("Seed")
    shares = shard(names, seed, len(receivers)) if sharded else [names] * len(receivers)
    for sandbox, share in zip(receivers, shares):
        _link(share, copies, sandbox.channel(channel["ChannelName"]))


def _link(names: Iterable[str], copies: Path, channel: Path) -> None:
    channel.mkdir(parents=True, exist_ok=True)
    made = {channel}
    for name in names:
        target = channel / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        os.link(copies / name, target)


def _copier(path: Path) -> Callable[[Path], None]:
    return lambda target: copy(path, target)


def _downloader(store: Any, found: Any) -> Callable[[Path], None]:
    return lambda target: store.download(found, target)


def _raise(error: OSError) -> None:
    raise error


def _cause(uri: str, error: Exception) -> str:
    """Give an error's text without the URI that is said already."""
    return str(error)[len(uri) + 2 :] if str(error).startswith(f"{uri}: ") else str(error)
