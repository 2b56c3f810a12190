"""Pack a script and its directory into ``sourcedir.tar.gz``: the same tree gives the same bytes."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Callable, NamedTuple, Optional

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, MARK
from scriptmode._core.text.messages import did_you_mean_path, format_bytes, warn_caller
from scriptmode.errors import SourceError
from scriptmode_runtime._files import beneath

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import Script

_Rule = Callable[[str], Optional[bool]]

IGNORE_FILE = ".scriptmodeignore"
ARCHIVE_NAME = "sourcedir.tar.gz"
#: Never part of a program: version control, caches, editors' files, virtual environments, jobs.
_LEFT_OUT_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox",
     "node_modules"}
)  # fmt: skip
_LEFT_OUT_FILES = frozenset({".DS_Store", IGNORE_FILE})
#: Bytes from which there is a warning, and the number of files that it names: gzip packs 10 to 50 MB a second.
_LARGE, _LARGEST = 50 * 10**6, 3
#: The runtime unpacks no deeper directories.
_DEEPEST = 200
#: Names that files with secrets go by.
_SECRET = re.compile(
    r".*\.(pem|key|p12|pfx|jks|kdbx)|id_(rsa|ed25519|ecdsa).*|\.(netrc|pypirc|npmrc|git-credentials|htpasswd)|kubeconfig"
    r"|\.env(\..*)?|secrets\..*|credentials(\.json)?|(kaggle|(service[-_]account|client_secret).*)\.json",
    re.DOTALL,
)
#: The first line of a private key, of OpenSSL, OpenSSH, PGP and PuTTY; certificates may stand before it.
_PRIVATE_KEY = re.compile(rb"^\s*(-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File-)", re.MULTILINE)


class Source(NamedTuple):
    """A packed source: gzip-compressed tar ``data``, its SHA-256 as ``digest``, and its files by their names in it.

    Their paths are as the caller named their directories; those of a source from Git are gone.
    """

    data: bytes
    digest: str
    files: Mapping[str, Path]


class _Member(NamedTuple):
    """A file to be packed, or a directory with nothing to pack in it. One below a ``folder`` is opened beneath it."""

    path: Path
    folder: Path | None = None
    is_folder: bool = False

    def open(self) -> BinaryIO:
        """Open the file for reading."""
        if self.folder is None:
            return self.path.open("rb")
        with _opened(self.folder) as directory:
            return os.fdopen(directory.open_file(self.path.relative_to(self.folder).as_posix()), "rb")

    def is_same(self, other: _Member) -> bool:
        """Return whether the other one is the same file, or an empty directory as this one is."""
        return (self.is_folder and other.is_folder) or self.path.samefile(other.path)


def read_source(script: Script) -> Source:
    """Pack the script's directory and dependencies, of a Git repository that is checked out where it names one.

    Warns of a large source, and of likely secrets.

    Raises:
        SourceError: For a missing file, for a symbolic link that points outside the tree, and for private keys.

    """
    if script.git is not None:
        from scriptmode._core.source.git import checkout, script_within

        with checkout(script.git) as folder:
            return read_source(script_within(folder, script))
    members = _members(script)
    _require_program(script, members)
    files = {name: member.path for name, member in members.items() if not member.is_folder}
    sizes = {name: path.stat().st_size for name, path in files.items()}
    if (total := sum(sizes.values())) > _LARGE:
        _warn_of_size(sizes, total)
    data = _pack(members)
    return Source(data, hashlib.sha256(data).hexdigest(), files)


def _require_program(script: Script, members: Mapping[str, _Member]) -> None:
    """Raise `SourceError` for an entry point that no host can start, such as data."""
    member = members.get(name := script_name(script))
    if member and Path(name).suffix not in (".py", ".sh", ""):
        with member.open() as file:
            is_program = file.read(4).startswith((b"#!", b"\x7fELF"))
        if not is_program:
            step = "name a script: .py, .sh, or a file whose first line has its interpreter, such as #!/bin/sh"
            raise SourceError(f"entry_point {name!r} is not a program", step, argument="entry_point")


def _warn_of_size(sizes: Mapping[str, int], total: int) -> None:
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST]
    named = ", ".join(f"{name} ({format_bytes(sizes[name])})" for name in largest)
    warn_caller(
        f"the source has {format_bytes(total)}, which every job packs and each host unpacks; the largest files are "
        f"{named}; name what the job does not need in {IGNORE_FILE} of the source directory (syntax of .gitignore), "
        "or give data as an input"
    )


def _members(script: Script) -> dict[str, _Member]:
    members: dict[str, _Member] = {}
    if script.source_dir is None:
        path = _existing(Path(script.entry_point), "entry_point", script.entry_point)
        _require_file(path, "entry_point", script.entry_point)
        members[path.name] = _Member(path)
    else:
        members.update(_tree(_source_root(script)))
    for dependency in script.dependencies:
        for name, member in _dependency(dependency).items():
            if not members.setdefault(name, member).is_same(member):
                what = f"dependency {dependency!r} and the source directory both have {name!r}"
                raise SourceError(what, "rename one of them", argument="dependencies")
    return members


def _pack(members: Mapping[str, _Member]) -> bytes:
    buffer = io.BytesIO()
    packed = gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="")
    with packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(members):
            _add(tar, name, members[name])
    return buffer.getvalue()


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return by name what would be packed of a directory; raise `SourceError` as `read_source` does."""
    contents = {}
    for name, member in _tree(folder).items():
        if not member.is_folder:
            with member.open() as file:
                contents[name] = file.read()
    return contents


def script_name(script: Script) -> str:
    """Return the entry point's name in the archive."""
    path = Path(script.entry_point)
    return path.name if script.source_dir is None else path.as_posix()


def _existing(path: Path, argument: str, value: str) -> Path:
    if path.exists():
        return path
    advice = did_you_mean_path(path) or "correct it"
    raise SourceError(f"{argument} {value!r} does not exist (looked in {Path.cwd()})", advice, argument=argument)


def _source_root(script: Script) -> Path:
    source_dir = str(script.source_dir)
    root = _existing(Path(source_dir), "source_dir", source_dir)
    if not root.is_dir():
        what = f"source_dir {source_dir!r} is not a directory"
        raise SourceError(what, "for one file, give entry_point alone; unpack an archive", argument="source_dir")
    entry, base = Path(script.entry_point), Path(os.path.normpath(root.absolute()))
    if entry.is_absolute() and base in entry.parents:
        inside = str(entry.relative_to(base))
        what = f"entry_point {script.entry_point!r} is an absolute path"
        raise SourceError(what, f"name it within source_dir: {inside!r}", argument="entry_point")
    try:
        with _opened(root) as directory:
            is_file = stat.S_ISREG(directory.stat(script.entry_point).st_mode)
    except beneath.EscapeError as error:
        what = f"entry_point {script.entry_point!r} is outside source_dir {source_dir!r}"
        raise SourceError(what, "name a file in it", argument="entry_point") from error
    except OSError:
        is_file = False
    if not is_file:
        what = f"entry_point {script.entry_point!r} is not in source_dir {source_dir!r}"
        raise SourceError(what, did_you_mean_path(root / entry) or "name a file in it", argument="entry_point")
    return root


def _opened(folder: Path) -> beneath.Directory:
    """Open a source directory; absolute links below it may name it as it was given."""
    return beneath.Directory(folder, seen_as=str(folder.absolute()))


def _dependency(value: str) -> dict[str, _Member]:
    # What the caller named: its own name counts where that is a link, "." or "..".
    path = _existing(Path(value), "dependency", value).resolve(strict=True)
    if path.is_dir():
        return {f"{path.name}/{name}": member for name, member in _tree(path).items()}
    _require_file(path, "dependency", value)
    if _is_private_key(path):
        raise SourceError(f"dependency {value!r} is a private key", "leave it out", argument="dependencies")
    return {path.name: _Member(path)}


def _require_file(path: Path, argument: str, value: str) -> None:
    """Raise `SourceError` for a FIFO, which would be waited for without end, and for a device."""
    if not path.is_file():
        raise SourceError(f"{argument} {value!r} is not a regular file", "name the file itself", argument=argument)


def _tree(root: Path) -> dict[str, _Member]:
    """Return what to pack below ``root`` by name, ignore file honoured; refuse private keys, and warn of other secrets.

    The name of a directory with nothing to pack in it ends with a slash: a script may write there.
    """
    if (root / MARK).exists():
        what = f"source directory {str(root)!r} is also the data directory, with all jobs and their secrets"
        raise SourceError(what, f"name another one in {DATA_DIR_VARIABLE}", argument="source_dir")
    rule = _ignore_rules(root)
    names = list(_walk(root, "", rule))
    unnamed = [name for name in names if not name.endswith("/") and rule(name) is None]
    keys = [name for name in unnamed if _is_private_key(root / name)]
    secrets = keys or list(filter(_looks_secret, unnamed))
    if secrets:
        kind = "private keys" if keys else "files that look like secrets and are packed"
        what = f"source directory {str(root)!r} has {kind}: {', '.join(map(repr, secrets))}"
        step = f"name in {IGNORE_FILE} what the job does not need; the line '!{secrets[0]}' there packs one knowingly"
        if keys:
            raise SourceError(what, step, argument="source_dir")
        warn_caller(f"{what}; {step}")
    return {name: _Member(root / name, root, is_folder=name.endswith("/")) for name in names}


def _walk(root: Path, below: str, rule: _Rule) -> Iterator[str]:
    if below.count("/") > _DEEPEST:
        what = f"source directory {str(root)!r} has more than {_DEEPEST} directories in each other"
        raise SourceError(what, f"name {below[:40]!r} in {IGNORE_FILE}", argument="source_dir")
    for path in sorted((root / below).iterdir(), key=lambda entry: entry.name):
        relative = f"{below}{path.name}"
        if _left_out(path) or rule(f"{relative}/" if path.is_dir() else relative):
            continue
        if path.is_symlink():
            _check_link(root, path)
        if path.is_dir():
            inside = list(_walk(root, f"{relative}/", rule))
            yield from inside or [f"{relative}/"]
        elif path.is_file():
            yield relative
        elif path.exists():
            what = f"{str(path)!r} is neither a file nor a directory (a FIFO, a socket or a device) and is not packed"
            warn_caller(f"{what}; name it in {IGNORE_FILE}")


def _left_out(path: Path) -> bool:
    if path.is_dir():
        return path.name in _LEFT_OUT_FOLDERS or any((path / mark).exists() for mark in ("pyvenv.cfg", MARK))
    return path.name in _LEFT_OUT_FILES or path.name.endswith(".pyc")


def _is_private_key(path: Path) -> bool:
    """Return whether a line says so, of a file that looks like secrets any; False for what cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        find = _PRIVATE_KEY.search if _looks_secret(path.name) else _PRIVATE_KEY.match
        return find(file.read(64 * 1024)) is not None
    return False


def _looks_secret(name: str) -> bool:
    is_sample = name.endswith((".example", ".sample", ".template"))
    return not is_sample and _SECRET.fullmatch(name.rpartition("/")[2]) is not None


def _check_link(root: Path, path: Path) -> None:
    name = path.relative_to(root).as_posix()
    try:
        with _opened(root) as directory, directory.at(name, follow=True) as at:
            os.stat(at.name, dir_fd=at.dir_fd, follow_symlinks=False)
            is_above = f"{name}/".startswith(f"{at.path}/" if at.path else "")
    except beneath.EscapeError as error:
        what = f"symbolic link {str(path)!r} leaves the source directory (to {str(path.readlink())!r})"
        step = f"copy what is needed, or name the link in {IGNORE_FILE} and give its target as a dependency"
        raise SourceError(what, step, argument="source_dir") from error
    except OSError as error:
        reason = "a circle of links" if error.errno == errno.ELOOP else "which does not exist"
        what = f"symbolic link {str(path)!r} points to {str(path.readlink())!r}, {reason}"
        raise SourceError(what, f"remove the link, or name it in {IGNORE_FILE}", argument="source_dir") from error
    if is_above:
        what = f"symbolic link {str(path)!r} points to {str(path.readlink())!r}, a directory that the link itself is in"
        raise SourceError(what, f"remove the link, or name it in {IGNORE_FILE}", argument="source_dir")


def _ignore_rules(root: Path) -> _Rule:
    """Return the ignore file's decision on a name: True to leave it out, False to pack it, None for no rule."""
    rules = root / IGNORE_FILE
    if not rules.is_file():
        return lambda _name: None
    from pathspec import GitIgnoreSpec

    lines = rules.read_text(encoding="utf-8").splitlines()
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise SourceError(
            f"{str(rules)!r} has a line that is not a pattern: {error}", "correct or remove it", argument="source_dir"
        ) from error
    return lambda name: spec.check_file(name).include


def _add(tar: tarfile.TarFile, name: str, member: _Member) -> None:
    """Add a file or an empty directory."""
    if member.is_folder:
        info = tarfile.TarInfo(name.rstrip("/"))
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
        return
    with member.open() as file:
        status = os.fstat(file.fileno())
        info = tarfile.TarInfo(name)
        info.size = status.st_size
        info.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        tar.addfile(info, file)
