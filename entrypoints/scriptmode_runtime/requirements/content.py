"""What pip would install for a source: a digest of everything that determines it, where there is such a digest."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import sysconfig
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Changes when environments of earlier versions must not be used any more.
_VERSION = "2"
_REQUIREMENTS, _CONSTRAINTS = ("-r", "--requirement"), ("-c", "--constraint")
_FIND_LINKS = ("-f", "--find-links")
_WITH_VALUE = ("-i", "--index-url", "--pypi-url", "--extra-index-url", "--trusted-host", "--only-binary", "--no-binary")
_WITHOUT_VALUE = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")
#: Variables of pip that name files, or another place to install into.
_UNKEYED_VARIABLES = ("PIP_CONSTRAINT", "PIP_EDITABLE", "PIP_PREFIX", "PIP_REQUIREMENT", "PIP_ROOT", "PIP_TARGET")
#: Names of what makes a package importable in a directory of `sys.path`.
_INSTALLED = (".dist-info", ".egg-info", ".egg-link", ".egg", ".pth")
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.lzma", ".tlz")
#: Not part of a package's source.
_NOT_SOURCE = frozenset({".git", "__pycache__"})

# pip's own syntax of requirements files: comments, variables, the options of one requirement.
_COMMENT = re.compile(r"(^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Z0-9_]+)\}")
_OPTIONS = re.compile(r"\s--?[a-z].*$")
#: ``name @ URL`` (PEP 508).
_DIRECT = re.compile(r"[\w.-]+\s*(\[[^\]]*\])?\s*@\s*(?P<url>\S+)")
_NAME = re.compile(r"[\w.-]+")
_EXTRAS = re.compile(r"\[[^\]]*\]$")
_VCS = re.compile(r"(git|hg|svn|bzr)\+")
_COMMIT = re.compile(r"@[0-9a-f]{40}(#|$)")
_HASH = re.compile(r"#(\w+&)?(sha256|sha384|sha512)=")
_EXACT = re.compile(r"==\s*[\w.!+-]+\s*(,|\)|$)")
#: Credentials in a URL: they may be new for each job, and determine nothing.
_CREDENTIALS = re.compile(r"://[^/@\s]*@")


class NoDigestError(Exception):
    """The content of these requirements is not known before they are installed; the text says why."""


class Content(NamedTuple):
    """What determines an environment: a digest, and whether every requirement names one version."""

    digest: str
    is_pinned: bool


def read_content(code: str, arguments: Iterable[str]) -> Content:
    """Return the content of pip's ``arguments``, run in the directory ``code``; raise `NoDigestError`."""
    reader = _Reader(code)
    words = iter(arguments)
    for word in words:
        if word != "-r":
            raise NoDigestError("the source is a package")
        reader.add_file(next(words), is_constraint=False)
    for text in _interpreter():
        reader.add("interpreter", text)
    for text in _pip_settings():
        reader.add("pip", text)
    return Content(reader.digest.hexdigest()[:20], is_pinned=reader.is_pinned)


class _Reader:
    """Reads requirements files and the local files that they name."""

    def __init__(self, code: str) -> None:
        self._code = code
        self.digest = hashlib.sha256()
        self._files: set[str] = set()
        self._unpinned: set[str] = set()
        self._constrained: set[str] = set()
        #: The current line as it is written, where variables are replaced in it; else "".
        self._written = ""
        self.add("version", _VERSION)

    @property
    def is_pinned(self) -> bool:
        return self._unpinned <= self._constrained

    def add(self, title: str, text: str) -> None:
        """Add a text to the digest, without credentials."""
        content = _CREDENTIALS.sub("://", text).encode("utf-8", "surrogateescape")
        self.digest.update(f"{title} {len(content)}\n".encode("utf-8", "surrogateescape"))
        self.digest.update(content)

    def add_file(self, path: str, *, is_constraint: bool) -> None:
        """Add a requirements file, or one of constraints, with the files that it includes."""
        if path in self._files:
            return
        self._files.add(path)
        text = _read(path)
        self.add("constraints" if is_constraint else "requirements", _with_variables(text))
        for written in _logical_lines(text):
            line = _with_variables(written)
            self._written = written if line != written else ""
            if line.startswith("-"):
                self._add_options(line, os.path.dirname(path))
            else:
                self._add_requirement(line, is_constraint=is_constraint)

    def _add_options(self, line: str, folder: str) -> None:
        for name, value in _options(line, self._shown(line)):
            if name in (*_REQUIREMENTS, *_CONSTRAINTS):
                if "://" in value:
                    raise NoDigestError(f"{self._shown(value)!r} is not a file of this machine")
                self.add_file(os.path.join(folder, value), is_constraint=name in _CONSTRAINTS)
            elif name in _FIND_LINKS and "://" not in value:
                # As pip does: relative to the file, or else to the code directory.
                beside = os.path.join(folder, value)
                self._add_path(beside if os.path.exists(beside) else os.path.join(self._code, value), value)

    def _add_requirement(self, line: str, *, is_constraint: bool) -> None:
        text = _OPTIONS.sub("", line)
        direct = _DIRECT.match(text)
        address = direct["url"] if direct else text.partition(" ;")[0].strip()
        if _VCS.match(address):
            if not _COMMIT.search(address):
                raise NoDigestError(f"{self._shown(address)!r} names no commit")
        elif address.startswith("file:"):
            from urllib.parse import unquote, urlsplit

            self._add_path(os.path.join(self._code, unquote(urlsplit(address).path)), address)
        elif "://" in address:
            if not _HASH.search(address):
                self._unpinned.add(address)
        elif _is_path(path := _EXTRAS.sub("", text.partition(";")[0].strip())):
            self._add_path(os.path.join(self._code, path), path)
        else:
            name, constraint = _NAME.match(text), text.partition(";")[0]
            found = re.sub(r"[-_.]+", "-", name[0] if name else text).lower()
            if not _EXACT.search(constraint.strip()):
                self._unpinned |= set() if is_constraint else {found}
            elif is_constraint:
                self._constrained.add(found)

    def _add_path(self, path: str, shown: str) -> None:
        """Add the content of a file or a directory of this machine."""
        path = os.path.normpath(path)
        if os.path.commonpath([path, self._code]) == path:
            raise NoDigestError(f"{self._shown(shown)!r} is the source itself")
        if os.path.isfile(path):
            self._add_content(path, os.path.basename(path))
            return
        if not os.path.isdir(path):
            raise NoDigestError(f"{self._shown(shown)!r} does not exist")
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(set(folders) - _NOT_SOURCE)
            for name in sorted(files):
                self._add_content(os.path.join(folder, name), os.path.relpath(os.path.join(folder, name), path))

    def _add_content(self, path: str, name: str) -> None:
        content = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                while chunk := file.read(1 << 20):
                    content.update(chunk)
        except OSError as error:
            raise NoDigestError(f"{path!r} cannot be read: {error.strerror}") from error
        self.add(name, content.hexdigest())

    def _shown(self, text: str) -> str:
        """Return a text of the current line for a message: without secrets, which variables may hold too."""
        return _CREDENTIALS.sub("://", self._written or text)


def _with_variables(text: str) -> str:
    return _VARIABLE.sub(lambda found: os.environ.get(found["name"]) or found[0], text)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise NoDigestError(f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines of a requirements file without comments, with continued lines joined, as pip does."""
    start = ""
    for line in text.splitlines():
        is_comment = _COMMENT.match(line)
        if line.endswith("\\") and not is_comment:
            start += line.rstrip("\\")
            continue
        whole = _COMMENT.sub("", start + (" " if is_comment else "") + line).strip()
        start = ""
        if whole:
            yield whole
    if start.strip():
        yield start.strip()


def _options(line: str, shown: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a line with their values; raise `NoDigestError` for one that may name unknown content.

    ``shown`` is the line for messages.
    """
    try:
        words = iter(shlex.split(line))
    except ValueError as error:
        raise NoDigestError(f"{shown!r} cannot be parsed: {error}") from error
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            name, equals, value = word[:2], word[2:], word[2:]
        if name in _WITHOUT_VALUE:
            yield name, ""
        elif name in (*_REQUIREMENTS, *_CONSTRAINTS, *_FIND_LINKS, *_WITH_VALUE):
            yield name, value if equals else next(words, "")
        else:
            raise NoDigestError(f"{shown!r} cannot be shared by jobs")


def _is_path(text: str) -> bool:
    return os.sep in text or text.startswith(".") or text.lower().endswith(_ARCHIVES)


def _interpreter() -> Iterator[str]:
    """Yield what the installed packages are built for, and what is installed already."""
    yield from (sys.version, sys.prefix, sys.base_prefix, sysconfig.get_platform())
    try:
        yield os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        yield ""  # another C library than GNU's
    for path in filter(os.path.isdir, sys.path):
        # A host's own directories have none.
        if installed := sorted(name for name in os.listdir(path) if name.endswith(_INSTALLED)):
            yield from (path, *installed)


def _pip_settings() -> Iterator[str]:
    """Yield the variables and the configuration files that pip reads."""
    for name in _UNKEYED_VARIABLES:
        if os.environ.get(name):
            raise NoDigestError(f"{name} is set")
    yield from (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("PIP_"))
    home = os.path.expanduser("~")
    user = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    machine = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    folders = (*(os.path.join(path, "pip") for path in machine), "/etc", os.path.join(home, ".pip"))
    named = os.environ.get("PIP_CONFIG_FILE", "")
    files = [os.path.join(path, "pip.conf") for path in (*folders, os.path.join(user, "pip"), sys.prefix)]
    for path in filter(os.path.isfile, (*files, named)):
        yield _read(path)
