"""A Git repository as a source: the value, and the ``git_config`` argument of the SageMaker SDK. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from scriptmode.errors import SpecError, invalid
from scriptmode.messages import validate_keys

#: The keys of ``git_config`` (SageMaker SDK, ``git_utils``), and the fields of `GitSource`.
_FIELDS = {
    "repo": "repo",
    "branch": "branch",
    "commit": "commit",
    "2FA_enabled": "two_factor",
    "username": "username",
    "password": "password",
    "token": "token",
}
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
        for key in ("repo", "branch", "commit"):
            value = getattr(self, key)
            if value is not None and (value.startswith("-") or not value.isprintable()):
                raise SpecError(
                    f"git_config[{key!r}] is {without_login(value)!r}",
                    argument="git_config",
                    advice="remove '-' at its start and control characters",
                )
        _check_repo(self.repo)
        self._check_credentials()

    @property
    def login(self) -> tuple[str, str] | None:
        """User name and password for HTTP; a token is a user name with an empty password, as GitHub accepts it."""
        if self.token is not None:
            return self.token, ""
        return (self.username or "", self.password) if self.password is not None else None

    def _check_credentials(self) -> None:
        given = [key for key in ("token", "username", "password") if getattr(self, key) is not None]
        if not given:
            return
        scheme, host = url_scheme(self.repo), urlsplit(self.repo).hostname if "://" in self.repo else None
        if scheme not in _WEB:
            used = "no credentials" if scheme == "file" else "your SSH keys"
            raise SpecError(
                f"git_config[{given[0]!r}] is for https:// URLs, but git uses {used} for {self.repo!r}",
                argument="git_config",
                advice="leave it out",
            )
        if scheme == "http" and host not in _THIS_MACHINE:
            raise SpecError(
                f"git_config[{given[0]!r}] would be sent unencrypted to {self.repo!r}",
                argument="git_config",
                advice="use https://",
            )
        if self.token is not None:
            return
        if self.two_factor:
            raise SpecError(
                "git_config['2FA_enabled'] is True, for which a password is not sufficient",
                argument="git_config",
                advice="add a token",
            )
        if len(given) == 1:
            missing = "password" if given == ["username"] else "username"
            raise invalid("git_config", f"has {given[0]!r} without {missing!r}", f"add {missing!r}, or use a token")


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
    validate_keys("git_config", value, _FIELDS, argument="git_config")
    for key, content in value.items():
        # Values are not shown: they may be secrets.
        if key == "2FA_enabled":
            if not isinstance(content, bool):
                raise SpecError(
                    f"git_config[{key!r}] is a {type(content).__name__}",
                    argument="git_config",
                    advice="pass True or False",
                )
        elif not isinstance(content, str) or not content:
            what = "empty" if content == "" else f"a {type(content).__name__}"
            raise SpecError(
                f"git_config[{key!r}] is {what}",
                argument="git_config",
                advice="pass a string that is not empty, or leave the key out",
            )
    if "repo" not in value:
        raise invalid("git_config", "has no 'repo'", f"add the repository's URL: {_URL_FORMS}")
    return GitSource(**{_FIELDS[key]: content for key, content in value.items()})


def url_scheme(repo: str) -> str:
    """Return the scheme of a repository's URL; ``ssh`` for the short form ``git@host:path``."""
    return repo.partition("://")[0] if "://" in repo else "ssh"


def _check_repo(repo: str) -> None:
    wrong = SpecError(
        f"git_config['repo'] is {without_login(repo)!r}", argument="git_config", advice=f"use {_URL_FORMS}"
    )
    if "://" not in repo:
        if not _SSH_SHORT_FORM.fullmatch(repo):
            raise wrong
        return
    try:
        url = urlsplit(repo)
        # A password that contains a slash is parsed as a port, which raises ValueError.
        has_host = url.port is not None or bool(url.hostname)
    except ValueError as error:
        raise wrong from error
    if url_scheme(repo) not in (*_WEB, "ssh", "file") or has_host == (url.scheme == "file"):
        raise wrong
    if url.password is not None or (url.username is not None and url.scheme in _WEB):
        raise SpecError(
            f"git_config['repo'] contains credentials ({without_login(repo)!r})",
            argument="git_config",
            advice="remove them from the URL and add a token, or username and password, to git_config",
        )


def without_login(text: str) -> str:
    """Remove the text between ``//`` and ``@`` of a URL: it may be a secret."""
    return re.sub(r"(?<=://).*@", "***@", text)
