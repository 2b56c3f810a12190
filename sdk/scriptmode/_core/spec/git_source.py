"""A Git repository as a source: the value, and the ``git_config`` argument of the SageMaker SDK. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import SpecError, invalid

#: The keys of ``git_config`` (SageMaker SDK, ``git_utils``).
_KEYS = ("repo", "branch", "commit", "2FA_enabled", "username", "password", "token")
_WEB = ("https", "http")
_URL_FORMS = "https://..., ssh://..., git@host:path, or file:///... for a repository on this machine"
_SSH_SHORT_FORM = re.compile(r"[^\s/@:]+@[^\s/@:]+:.+")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class GitSource:
    """A tree in a repository: at a commit, else at a branch or tag, else at the default branch.

    The repository defines its default branch. The SageMaker SDK's documentation calls it 'master'.
    """

    repo: str
    branch: str | None = None
    commit: str | None = None
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    #: Takes precedence over username and password.
    token: str | None = field(default=None, repr=False)
    #: Whether the host requires a second factor, so that a password is not sufficient.
    two_factor: bool = False

    def __post_init__(self) -> None:
        for key, value in (("repo", self.repo), ("branch", self.branch), ("commit", self.commit)):
            if value is not None and (value.startswith("-") or not value.isprintable()):
                raise _wrong(key, f"is {_without_login(value)!r}", "remove '-' at its start and control characters")
        scheme = _check_repo(self.repo)
        if given := [key for key in ("token", "username", "password") if getattr(self, key) is not None]:
            self._check_credentials(scheme, given)

    def _check_credentials(self, scheme: str, given: Sequence[str]) -> None:
        if scheme not in _WEB:
            used = "no credentials" if scheme == "file" else "your SSH keys"
            raise _wrong(given[0], f"is for https:// URLs, but git uses {used} for {self.repo!r}", "leave it out")
        if scheme == "http" and urlsplit(self.repo).hostname not in _THIS_MACHINE:
            raise _wrong(given[0], f"would be sent unencrypted to {self.repo!r}", "use https://")
        if self.token is None and self.two_factor:
            raise _wrong("2FA_enabled", "is True, for which a password is not sufficient", "add a token")
        if self.token is None and len(given) == 1:
            missing = "password" if given == ["username"] else "username"
            raise invalid("git_config", f"has {given[0]!r} without {missing!r}", f"add {missing!r}, or use a token")

    @property
    def login(self) -> tuple[str, str] | None:
        """User name and password for HTTP; a token is a user name with an empty password, as GitHub accepts it."""
        if self.token is not None:
            return self.token, ""
        return (self.username or "", self.password) if self.password is not None else None


def parse_git_config(value: object) -> GitSource | None:
    """Parse the estimator's ``git_config``; return ``None`` for ``None`` and for an empty dict.

    Raises `SpecError` for unknown keys, wrong types, unsupported URLs, and credentials that the URL does not use.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise invalid("git_config", f"is a {type(value).__name__}", "pass a dict such as {'repo': 'https://...'}")
    if not value:
        return None
    validate_keys("git_config", value, _KEYS, argument="git_config")
    for key, content in value.items():
        # Values are not shown: they may be secrets.
        kind = f"is a {type(content).__name__}"
        if key == "2FA_enabled":
            if not isinstance(content, bool):
                raise _wrong(key, kind, "pass True or False")
        elif not isinstance(content, str) or not content:
            what = "is empty" if content == "" else kind
            raise _wrong(key, what, "pass a string that is not empty, or leave the key out")
    if "repo" not in value:
        raise invalid("git_config", "has no 'repo'", f"add the repository's URL: {_URL_FORMS}")
    return GitSource(**{"two_factor" if key == "2FA_enabled" else key: content for key, content in value.items()})


def _check_repo(repo: str) -> str:
    """Return the scheme of a repository's URL, ``ssh`` for the short form ``git@host:path``; raise `SpecError`."""
    wrong = _wrong("repo", f"is {_without_login(repo)!r}", f"use {_URL_FORMS}")
    if "://" not in repo:
        if not _SSH_SHORT_FORM.fullmatch(repo):
            raise wrong
        return "ssh"
    try:
        url = urlsplit(repo)
        # A password that contains a slash is parsed as a port, which raises ValueError.
        has_host = url.port is not None or bool(url.hostname)
    except ValueError as error:
        raise wrong from error
    scheme = repo.partition("://")[0]
    if scheme not in (*_WEB, "ssh", "file") or has_host == (scheme == "file"):
        raise wrong
    if url.password is not None or (url.username is not None and scheme in _WEB):
        what = f"contains credentials ({_without_login(repo)!r})"
        raise _wrong("repo", what, "remove them from the URL and add a token, or username and password, to git_config")
    return scheme


def _wrong(key: str, what: str, advice: str) -> SpecError:
    return SpecError(f"git_config[{key!r}] {what}", advice, argument="git_config")


def _without_login(text: str) -> str:
    """Remove the text between ``//`` and ``@`` of a URL: it may be a secret."""
    return re.sub(r"(?<=://).*@", "***@", text)
