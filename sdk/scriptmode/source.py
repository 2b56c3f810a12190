"""Pack a script and its folder into ``sourcedir.tar.gz``: the same tree gives the same bytes."""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import os
import stat
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional

from scriptmode.errors import SourceError
from scriptmode.nearby import near

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.spec import Script

_Rule = Callable[[str], Optional[bool]]

IGNORE_FILE = ".scriptmodeignore"
ARCHIVE_NAME = "sourcedir.tar.gz"
#: Never part of a program: version control, caches, editors' files.
_LEFT_OUT_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox",
     "node_modules"}
)  # fmt: skip
_LEFT_OUT_FILES = frozenset({".DS_Store", IGNORE_FILE})
_VIRTUAL_ENVIRONMENT_MARK = "pyvenv.cfg"
#: Names that files with secrets go by.
_SECRETS = (".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa*", "id_ed25519*",
            "id_ecdsa*", ".netrc", ".pypirc", ".npmrc", ".git-credentials", "credentials", "credentials.json",
            ".htpasswd", "secrets.*", "kaggle.json", "service-account*.json", "service_account*.json")  # fmt: skip


@dataclass(frozen=True)
class Archive:
    """A packed source: gzip-compressed tar ``data``, its SHA-256 as ``digest``, and how many ``files`` are in it."""

    data: bytes
    digest: str
    files: int


def remote_uri(script: Script) -> str | None:
    """Give the URI of a source that is packed already (``source_dir="s3://.../sourcedir.tar.gz"``)."""
    return script.source_dir if script.is_packed else None


def pack(script: Script) -> Archive:
    """Pack the script's folder and dependencies, sorted, without owners and times.

    A source in a Git repository is checked out for it. Raises `SourceError` for what is not there and for a symbolic
    link that leaves the tree.
    """
    if script.git is None:
        return _pack(script)
    from scriptmode.git import checkout

    with checkout(script.git) as folder:
        return _pack(_within(folder, script))


def _within(folder: Path, script: Script) -> Script:
    """Give a script whose places are in the checked out ``folder``, none of them outside of it."""

    def inside(argument: str, value: str) -> str:
        path = folder / value
        if folder.resolve() not in (path.resolve(), *path.resolve().parents):
            raise SourceError(f"{argument} {value!r} is outside the Git repository; give a path within it")
        if not path.exists():
            raise SourceError(f"{argument} {value!r} is not in the Git repository{near(path)}")
        return str(path)

    dependencies = tuple(inside("dependency", each) for each in script.dependencies)
    if script.source_dir is None:
        entry_point = inside("entry_point", script.entry_point)
        return replace(script, entry_point=entry_point, dependencies=dependencies, git=None)
    source_dir = inside("source_dir", script.source_dir)
    inside("entry_point", f"{script.source_dir}/{script.entry_point}")
    return replace(script, source_dir=source_dir, dependencies=dependencies, git=None)


def _pack(script: Script) -> Archive:
    members: dict[str, Path] = {}
    if script.source_dir is None:
        path = _existing(Path(script.entry_point), "entry_point", script.entry_point)
        if path.is_dir():
            raise SourceError(f"entry_point {script.entry_point!r} is a folder; name the file that is to be run")
        members[path.name] = path
    else:
        members.update(_tree(_source_root(script)))
    for dependency in script.dependencies:
        for name, path in _dependency(dependency).items():
            if members.setdefault(name, path).resolve() != path.resolve():
                raise SourceError(
                    f"dependency {dependency!r} and the source folder both have {name!r}; rename one of them"
                )
    data = _archive(members)
    return Archive(data, hashlib.sha256(data).hexdigest(), len(members))


def program(script: Script) -> str:
    """Give the entry point's name inside the archive."""
    if script.source_dir is None:
        return Path(script.entry_point).name
    return Path(script.entry_point).as_posix()


def _existing(path: Path, argument: str, value: str) -> Path:
    if path.exists():
        return path
    raise SourceError(f"{argument} {value!r} does not exist (looked in {Path.cwd()}){near(path) or '; correct it'}")


def _source_root(script: Script) -> Path:
    source_dir = str(script.source_dir)
    root = _existing(Path(source_dir), "source_dir", source_dir)
    if not root.is_dir():
        raise SourceError(f"source_dir {source_dir!r} is not a folder; for one file, give entry_point alone")
    entry = Path(script.entry_point)
    target = root / entry
    if entry.is_absolute() and root.resolve() in target.resolve().parents:
        inside = os.path.relpath(target.resolve(), root.resolve())
        raise SourceError(f"entry_point {script.entry_point!r} is a whole path; name it within source_dir: {inside!r}")
    if entry.is_absolute() or os.path.relpath(target.resolve(), root.resolve()).startswith(".."):
        raise SourceError(f"entry_point {script.entry_point!r} is outside source_dir {source_dir!r}; name a file in it")
    if not target.is_file():
        raise SourceError(
            f"entry_point {script.entry_point!r} is not in source_dir {source_dir!r}"
            f"{near(target) or '; name a file in it'}"
        )
    return root


def _dependency(value: str) -> dict[str, Path]:
    path = _existing(Path(value), "dependency", value).resolve()
    if path.is_dir():
        return {f"{path.name}/{name}": member for name, member in _tree(path).items()}
    return {path.name: path}


def _tree(root: Path) -> dict[str, Path]:
    """Name every file to pack below ``root``, ignore file honoured; refuse files that look like secrets."""
    rule = _ignore_rules(root)
    names = list(_walk(root, "", rule))
    secrets = [name for name in names if _looks_secret(name) and rule(name) is None]
    if secrets:
        raise SourceError(
            f"source folder {str(root)!r} has files that look like secrets: {', '.join(map(repr, secrets))}; "
            f"take them away or name them in {IGNORE_FILE}, as '!{secrets[0]}' to pack them all the same"
        )
    return {name: root / name for name in names}


def _walk(root: Path, below: str, rule: _Rule) -> Iterator[str]:
    for path in sorted((root / below).iterdir(), key=lambda each: each.name):
        relative = f"{below}{path.name}"
        if _left_out(path) or rule(f"{relative}/" if path.is_dir() else relative):
            continue
        if path.is_symlink():
            _check_link(root, path)
        if path.is_dir():
            yield from _walk(root, f"{relative}/", rule)
        elif path.is_file():
            yield relative


def _left_out(path: Path) -> bool:
    if path.is_dir():
        return path.name in _LEFT_OUT_FOLDERS or (path / _VIRTUAL_ENVIRONMENT_MARK).exists()
    return path.name in _LEFT_OUT_FILES or path.name.endswith(".pyc")


def _looks_secret(name: str) -> bool:
    if name.endswith((".example", ".sample", ".template")):
        return False
    return any(fnmatch.fnmatchcase(name.rpartition("/")[2], pattern) for pattern in _SECRETS)


def _check_link(root: Path, path: Path) -> None:
    target = path.resolve()
    if not target.exists():
        raise SourceError(
            f"symbolic link {str(path)!r} points to {str(path.readlink())!r}, which does not exist; remove the link, "
            f"or name it in {IGNORE_FILE}"
        )
    inside = os.path.relpath(target, root.resolve())
    if inside == ".." or inside.startswith("../") or target in path.absolute().parents:
        raise SourceError(
            f"symbolic link {str(path)!r} leaves the source folder (to {str(path.readlink())!r}); "
            f"copy what is needed, or name the link in {IGNORE_FILE} and give its target as a dependency"
        )


def _ignore_rules(root: Path) -> _Rule:
    """Give what the ignore file says of a name: True to leave it out, False to pack it, None nothing."""
    rules = root / IGNORE_FILE
    if not rules.is_file():
        return lambda _name: None
    from pathspec import GitIgnoreSpec

    lines = rules.read_text(encoding="utf-8").splitlines()
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise SourceError(f"{str(rules)!r} has a line that is no pattern: {error}; correct or remove it") from error
    return lambda name: spec.check_file(name).include


def _archive(members: dict[str, Path]) -> bytes:
    buffer = io.BytesIO()
    packed = gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="")
    with packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(members):
            _add(tar, name, members[name])
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        member = tarfile.TarInfo(name)
        member.size = status.st_size
        member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        tar.addfile(member, file)
