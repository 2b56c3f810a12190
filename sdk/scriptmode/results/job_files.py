"""Copy files of a job: its model, output, checkpoints, code and logs, where they are now.

While a job runs on this machine, and after it failed, they are in its hosts' directories. After it completed, here or
elsewhere, its artifacts are downloaded into the cache. Nothing is read outside of these directories, whatever links a
host left in them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scriptmode.core.platforms.base import Platform
from scriptmode.core.spec.job_description import JobDescription
from scriptmode.core.text.messages import did_you_mean, suggest_similar
from scriptmode.errors import DataError, SpecError
from scriptmode.results.artifacts import download_cached, output_uri
from scriptmode_runtime import contract
from scriptmode_runtime.files import beneath

#: The areas of a job, and the directory of each in a host's ``/opt/ml``.
AREAS = {
    "model": contract.MODEL_DIR,
    "output": contract.OUTPUT_DATA_DIR,
    "checkpoints": contract.CHECKPOINTS_DIR,
    "code": contract.CODE_DIR,
    "log": "",
}
_PIECE = 1024 * 1024
#: How many names of a directory an error lists.
_MOST_NAMES = 20


@dataclass
class CopiedFiles:
    """The files that were written to ``target``, and the paths that were left out, as they are named in the job."""

    target: Path
    files: list[Path] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def copy_job_files(
    platform: Platform, description: JobDescription, path: str, target: Path, *, host: str | None = None
) -> CopiedFiles:
    """Copy a file or directory of a job, as ``cp -r`` copies it to ``target``; return what was copied.

    ``path`` is an area and a path below it, such as ``log/algo-1.log``. While the job runs it is read on ``host``, by
    default the first one. Links that lead out of the job's directory, and whatever is not a file, are left out. Raises
    `SpecError` for a path or a host that does not exist, and `DataError` for files that cannot be read or written.
    """
    try:
        parts = beneath.checked(path).split("/")
    except beneath.EscapeError as error:
        raise _outside(description, path) from error
    area, below = parts[0], "/".join(parts[1:])
    if area not in AREAS:
        raise _missing(description, path, list(AREAS))
    with _opened(platform, description, area, host) as (directory, root):
        inside = "/".join(filter(None, (root, below)))
        try:
            status = directory.stat(inside)
            with directory.at(inside, follow=True) as at:
                inside = at.path
        except beneath.EscapeError as error:
            raise _outside(description, path) from error
        except OSError as error:
            raise _missing(description, path, _names(directory, root, below)) from error
        if stat.S_ISDIR(status.st_mode) and not _names(directory, inside, ""):
            raise DataError(
                f"training job {description.name} is {description.status}, and its {path!r} has no files here",
                advice="look at its log" if description.has_ended else "wait for it to complete",
            )
        target = target / (below or area).rpartition("/")[2] if target.is_dir() else target
        try:
            return _copy(directory, inside, status, target)
        except OSError as error:
            what = f"{path!r} of training job {description.name} cannot be copied to {str(target)!r}: {error.strerror}"
            raise DataError(what, advice="name another target") from error


def _outside(description: JobDescription, path: str) -> SpecError:
    return SpecError(
        f"{path!r} leads out of the directory of training job {description.name}",
        argument="path",
        advice=f"name a path below one of {', '.join(AREAS)}",
    )


def _missing(description: JobDescription, path: str, names: list[str]) -> SpecError:
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")
    similar = suggest_similar(path.rpartition("/")[2], names) if path else ""
    what = f"training job {description.name} has no {path!r}" if path else "the path is missing"
    return SpecError(
        what, argument="path", advice=similar or (f"use one of {shown}" if names else "that directory is empty")
    )


def _names(directory: beneath.Directory, root: str, below: str) -> list[str]:
    """Return the names in the deepest existing directory of a path."""
    parts = [part for part in (*root.split("/"), *below.split("/")[:-1]) if part]
    for count in range(len(parts), -1, -1):
        try:
            with directory.below("/".join(parts[:count])) as found:
                return sorted(
                    entry.path + ("/" if entry.is_directory else "") for entry in found.walk() if not entry.above
                )
        except OSError:  # noqa: PERF203 - few turns
            continue
    return []


@contextmanager
def _opened(
    platform: Platform, description: JobDescription, area: str, host: str | None
) -> Iterator[tuple[beneath.Directory, str]]:
    """Yield an open directory, out of which nothing is copied, and the path of the area in it."""
    folder, seen_as, root = _located(platform, description, area, host)
    try:
        directory = beneath.Directory(folder, seen_as=seen_as)
    except OSError as error:
        raise DataError(
            f"training job {description.name} has no {area} here: {error}",
            advice="it may have ended in this moment: try again",
        ) from error
    with closing(directory):
        yield directory, root


def _located(
    platform: Platform, description: JobDescription, area: str, host: str | None
) -> tuple[Path, tuple[str, ...], str]:
    """Return a directory, the paths by which links in it name it, and the path of the area in it."""
    name, job = description.name, description.job
    if host is not None and host not in description.hosts:
        raise SpecError(
            f"training job {name} has no host {host!r}", argument="host", advice=did_you_mean(host, description.hosts)
        )
    if area == "log":
        return _logs(platform, name), (), ""
    uri = job.output.checkpoint_uri if area == "checkpoints" else None
    if uri and uri.startswith("file:///"):
        return Path(uri[len("file://") :]), (), ""
    folders = platform.host_folders(name)
    chosen = host or next(iter(folders), "")
    if chosen in folders:
        return folders[chosen], (contract.DEFAULT_BASE_DIR, str(folders[chosen])), AREAS[area]
    uris = {"model": description.model_uri, "output": output_uri(job), "checkpoints": uri, "code": job.source_uri}
    if not uris[area] or not description.has_ended:
        raise DataError(
            f"training job {name} is {description.status} and has no {area}",
            advice="" if description.has_ended else "wait for it to complete",
        )
    return download_cached(platform, description, area, str(uris[area])), (), ""


def _logs(platform: Platform, name: str) -> Path:
    location = next(iter(platform.log_locations(name).values()), "")
    if not location.startswith("/"):
        raise DataError(
            f"training job {name} has no log on this machine", advice=f"print it: scriptmode logs {name} > {name}.log"
        )
    return Path(location).parent


def _copy(directory: beneath.Directory, inside: str, status: os.stat_result, target: Path) -> CopiedFiles:
    copied = CopiedFiles(target)
    if not stat.S_ISDIR(status.st_mode):
        _write(_open(directory, inside), target)
        copied.files.append(target)
        return copied
    target.mkdir(exist_ok=True)
    with directory.below(inside) as below:
        entries = sorted((entry.path, entry.is_directory) for entry in below.walk())
    for name, is_directory in entries:
        if is_directory:
            (target / name).mkdir(exist_ok=True)
            continue
        try:
            descriptor = directory.open_file(f"{inside}/{name}" if inside else name)
        except OSError:
            copied.skipped.append(name)
            continue
        _write(descriptor, target / name)
        copied.files.append(target / name)
    return copied


def _open(directory: beneath.Directory, inside: str) -> int:
    try:
        return directory.open_file(inside)
    except OSError as error:
        name = inside.rpartition("/")[2]
        raise DataError(
            f"{name!r} cannot be copied: {error.strerror}", advice="copy a file that this user can read"
        ) from error


def _write(descriptor: int, target: Path) -> None:
    """Write the copy of a file whole or not at all; a link or a device is written to, not replaced."""
    is_replaced = not os.path.lexists(target) or (target.is_file() and not target.is_symlink())
    draft = target.with_name(f".new-{secrets.token_hex(8)}") if is_replaced else target
    with os.fdopen(descriptor, "rb") as source:
        # Programs stay executable; the owner may always replace the copy.
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as copy:
                shutil.copyfileobj(source, copy, _PIECE)
            if is_replaced:
                draft.replace(target)
        except BaseException:
            if is_replaced:
                draft.unlink(missing_ok=True)
            raise
