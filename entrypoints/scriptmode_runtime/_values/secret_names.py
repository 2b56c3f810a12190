"""Which values are secrets, by their names and in URLs. Pure."""

from __future__ import annotations

import re

#: The replacement of each secret.
MASK = "******"

_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Endings of names that are written as one word: PGPASSWORD, authtoken, SSHKEY.
_SECRET_ENDINGS = (
    "password", "passwords", "passwd", "passphrase", "passcode", "credential", "credentials", "secret", "secrets",
    "token", "tokens", "key", "keys",
)  # fmt: skip
_SECRET_WORDS = frozenset(
    {"authorization", "cookie", "credential", "credentials", "jwt", "passcode", "passphrase", "passwd", "password",
     "passwords", "secret", "secrets"}
)  # fmt: skip
#: A secret as the last word of a longer name: DB_PASS, DB_PWD, GITHUB_PAT; PWD alone is a directory.
_LAST_WORDS = frozenset({"auth", "bearer", "pass", "pat", "pwd", "signature"})
#: A key with one of these words is a secret; a key by itself, or a sorting key, is not.
_KEYS = frozenset(
    {"access", "account", "api", "auth", "encryption", "kaggle", "license", "master", "private", "secret", "service",
     "signing", "ssh", "storage", "subscription"}
)  # fmt: skip
#: Last words of names that only describe a secret.
_ABOUT = frozenset(
    {"arn", "count", "dir", "directory", "enabled", "expiration", "expiry", "file", "folder", "len", "length", "limit",
     "name", "path", "policy", "provider", "required", "size", "timeout", "ttl", "type"}
)  # fmt: skip
#: Words with which tokens are units of text.
_TEXT = frozenset(
    {"begin", "bos", "cls", "decoder", "end", "eos", "image", "mask", "max", "min", "n", "new", "num", "pad", "per",
     "prompt", "sep", "special", "start", "stop", "tokenizer", "total", "unk", "vocab", "vocabulary", "word"}
)  # fmt: skip
#: Prefixes of the names of files and directories, which are never secrets.
_PLACES = ("GOOGLE_APPLICATION_CREDENTIALS", "SM_CHANNEL_")

#: The text between ``//`` and ``@`` of a URL. Its length is bounded so that a long text without an end does not take
#: quadratic time. The second form is not a valid URL, but is used: a password with a slash in it. A port and a later
#: "@" do not match.
USERINFO = re.compile(
    r"""(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)"""
    r"""(?P<user>[^\s/?#'"<>]{1,4096}|[^\s/?#'"<>@:]{0,200}:(?!\d{1,5}(?:[/?#]|$))(?:(?!://)[^\s'"<>@]){1,4096})@"""
)


def is_secret(name: str, value: object = "") -> bool:
    """Return whether ``value`` is a secret by its name."""
    if isinstance(value, bool) or value is None or name.startswith(_PLACES):
        return False
    words = [part for word in _NAME_WORDS.findall(name) for part in _parts(word.lower())]
    if not words or words[-1] in _ABOUT:
        return False
    if _SECRET_WORDS.intersection(words) or any(
        after in ("key", "keys") and word in _KEYS for word, after in zip(words, words[1:])
    ):
        return True
    if isinstance(value, (int, float)):  # a number of tokens, of passes
        return False
    if "token" in words or "tokens" in words:
        return not _TEXT.intersection(words)
    return len(words) > 1 and words[-1] in _LAST_WORDS


def without_userinfo(text: str) -> str:
    """Return a text with the users and passwords of its URLs hidden."""
    return USERINFO.sub(rf"\g<scheme>{MASK}@", text)


def _parts(word: str) -> list[str]:
    """Split a word that is written as one: awssecretkey is aws, secret and key."""
    parts: list[str] = []
    while ending := next((ending for ending in _SECRET_ENDINGS if word.endswith(ending) and word != ending), ""):
        word = word.removesuffix(ending)
        parts.append(ending)
    return [word, *reversed(parts)]
