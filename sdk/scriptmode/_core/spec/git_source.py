"""A Git repository as a source: the value, and the ``git_config`` argument of the SageMaker SDK. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import invalid

#: The keys of ``git_config`` (SageMaker SDK, ``git_utils``); a host with a second factor takes a token.
_KEYS = ("repo", "branch", "commit", "username", "password", "token", "2FA_enabled")
#: URLs that credentials may be sent to: encrypted, or on this machine.
_SAFE = re.compile(r"https://.*|http://(localhost|127\.0\.0\.1|\[::1\])([:/].*)?")
#: URLs with a password, or for HTTP with a user name.
_WITH_LOGIN = re.compile(r"https?://[^/]*@|[a-z+]+://[^/@]*:(?!\d+/)[^@]*@", re.IGNORECASE)


@dataclass(frozen=True)
class GitSource:
    """A tree in a repository: at a commit, else at a branch or tag, else at the default branch of the repository."""

    repo: str
    branch: str | None = None
    commit: str | None = None
    #: User name and password for HTTP.
    login: tuple[str, str] | None = field(default=None, repr=False)


def parse_git_config(value: object) -> GitSource | None:
    """Parse the estimator's ``git_config``; ``None`` for ``None`` and an empty dict; raise `SpecError` for others."""
    if not value:
        return None
    if not isinstance(value, Mapping) or value.get("repo") is None:
        raise invalid("git_config", "is not a dict with 'repo'", "give one such as {'repo': 'https://...'}")
    validate_keys("git_config", value, _KEYS, argument="git_config")
    given = {key: text for key, text in value.items() if text is not None and key != "2FA_enabled"}
    for key, text in given.items():
        # Git would take it for an option. Values are not shown: they may be secrets.
        if not isinstance(text, str) or not text.isprintable() or text[:1] in ("", "-"):
            raise invalid("git_config", f"has a {key!r} that is empty, not printable or begins with '-'", "correct it")
    username, password = given.pop("username", ""), given.pop("password", "")
    # A token is a user name, as GitHub accepts it, and precedes another one.
    login = (token, "") if (token := given.pop("token", "")) else (username, password)
    if _WITH_LOGIN.match(given["repo"]) or (any(login) and not _SAFE.fullmatch(given["repo"])):
        what = "has a 'repo' that contains credentials, or is not an https:// URL to which credentials may be sent"
        raise invalid("git_config", what, "give such a URL, and beside it a token, or username and password")
    return GitSource(**given, login=login if any(login) else None)
