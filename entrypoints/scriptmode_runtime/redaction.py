"""Takes secrets out of what the launcher itself says: log lines, plans, failure files, words to other hosts. Pure.

A hyperparameter or variable is a secret by its name: password, secret, token, API key, access key, private key,
credential and the like, but not a file's, a count's or a tokenizer's (``secret_file``, ``max_tokens``, ``eos_token``).
``******`` stands instead of

* its value, wherever that stands, also as JSON, Python and URLs spell it, and line by line;
* a value shorter than six characters, or an everyday word such as ``default``, only right behind its own name
  (``--pin 1234``, ``"pin": "1234"``): anywhere else it is more likely another word, and hiding it would spoil the text;
* what stands between ``//`` and ``@`` of a URL, whoever wrote it.

A script's own output is never changed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MASK = "******"

#: Shorter values, and these words, are not told apart from any other text.
_SHORTEST = 6
_EVERYDAY = frozenset(
    {"default", "disabled", "enabled", "localhost", "optional", "password", "required", "secret", "unknown", "username"}
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: How a name ends that is written as one with what stands before it: PGPASSWORD, authtoken, SSHKEY.
_ENDINGS = (
    "password", "passwords", "passwd", "passphrase", "passcode", "credential", "credentials", "secret", "secrets",
    "token", "tokens", "key", "keys",
)  # fmt: skip
_SECRET_WORDS = frozenset(
    {"authorization", "cookie", "credential", "credentials", "jwt", "passcode", "passphrase", "passwd", "password",
     "passwords", "secret", "secrets"}
)  # fmt: skip
#: A secret as the last word of a longer name: DB_PASS, DB_PWD, GITHUB_PAT; PWD alone is a folder.
_LAST_WORDS = frozenset({"auth", "bearer", "pass", "pat", "pwd", "signature"})
#: A key of these is a secret; a key by itself, or a sorting key, is none.
_KEYS = frozenset(
    {"access", "account", "api", "auth", "encryption", "kaggle", "license", "master", "private", "secret", "service",
     "signing", "ssh", "storage", "subscription"}
)  # fmt: skip
#: The name of something about a secret.
_ABOUT = frozenset(
    {"arn", "count", "dir", "directory", "enabled", "expiration", "expiry", "file", "folder", "len", "length", "limit",
     "name", "path", "policy", "provider", "required", "size", "timeout", "ttl", "type"}
)  # fmt: skip
#: Whose tokens are pieces of text.
_TEXT = frozenset(
    {"begin", "bos", "cls", "decoder", "end", "eos", "image", "mask", "max", "min", "n", "new", "num", "pad", "per",
     "prompt", "sep", "special", "start", "stop", "tokenizer", "total", "unk", "vocab", "vocabulary", "word"}
)  # fmt: skip
#: Names of files and folders, whatever else they say.
_PLACES = ("GOOGLE_APPLICATION_CREDENTIALS", "SM_CHANNEL_")
#: Length is bounded so that a long text without an end costs no square of it. The second form is no proper URL, but is
#: written: a password with a slash in it. A port and a later "@" are none.
_USERINFO = re.compile(
    r"""(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)"""
    r"""(?P<user>[^\s/?#'"<>]{1,4096}|[^\s/?#'"<>@:]{0,200}:(?!\d{1,5}(?:[/?#]|$))(?:(?!://)[^\s'"<>@]){1,4096})@"""
)
#: What may stand between a name and its value in a command line, an assignment, JSON, or JSON inside JSON.
_SEPARATOR = r"""[\\"'=:,\s]{1,8}"""
_ASSIGNMENT = re.compile(r"""(?<![\w.])([A-Za-z_][\w.-]{0,200})=("[^"]*"|'[^']*'|[^\s;&,"']+)""")


def is_secret(name: str, value: object = "") -> bool:
    """Tell whether the name says that ``value`` is a secret."""
    if isinstance(value, bool) or value is None or name.startswith(_PLACES):
        return False
    words = [part for word in _WORDS.findall(name) for part in _parts(word.lower())]
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


def _parts(word: str) -> list[str]:
    """Take a word apart that is several written as one: awssecretkey is aws, secret and key."""
    parts: list[str] = []
    while ending := next((ending for ending in _ENDINGS if word.endswith(ending) and word != ending), ""):
        word = word.removesuffix(ending)
        parts.append(ending)
    return [word, *reversed(parts)]


class Redaction:
    """Takes the secrets among ``named`` values, and ``values`` that are secrets by themselves, out of texts."""

    def __init__(self, *named: Mapping[str, Any], values: Iterable[str] = ()) -> None:
        found = [*(pair for mapping in named for pair in _secrets(mapping)), *(("", value) for value in values)]
        anywhere = {spelled for _, value in found if _is_distinct(value) for spelled in _spellings(value)}
        longest_first = sorted(anywhere, key=lambda spelled: (-len(spelled), spelled))
        self._anywhere = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._behind_name = [
            re.compile(rf"((?<![A-Za-z0-9])(?i:{re.escape(name)}){_SEPARATOR}){re.escape(value)}(?![A-Za-z0-9])")
            for name, value in dict.fromkeys(found)
            if name and not _is_distinct(value)
        ]

    def __call__(self, text: str) -> str:
        """Give the text without secrets."""
        if self._anywhere:
            text = self._anywhere.sub(MASK, text)
        for pattern in self._behind_name:
            text = pattern.sub(rf"\g<1>{MASK}", text)
        return _USERINFO.sub(rf"\g<scheme>{MASK}@", text)

    def document(self, document: Any, name: str = "") -> Any:
        """Give a JSON document without secrets; those its own names tell of however short they are."""
        if isinstance(document, dict):
            return {key: self.document(value, str(key)) for key, value in document.items()}
        if isinstance(document, (list, tuple)):
            return [self.document(word, _option(before)) for before, word in zip(("", *document), document)]
        if name and document and is_secret(name, document):
            return MASK
        return self(document) if isinstance(document, str) else document


def _option(word: object) -> str:
    return word.lstrip("-") if isinstance(word, str) and word.startswith("-") else ""


def _is_distinct(value: str) -> bool:
    return len(value.strip()) >= _SHORTEST and value.lower() not in _EVERYDAY


def _secrets(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give names and values of secrets; "" is the name of one that is a secret by where it stands."""
    for name, value in named.items():
        if is_secret(str(name), value):
            yield from ((str(name), leaf) for leaf in _leaves(value))
        elif isinstance(value, dict):
            yield from _secrets(value)
        elif isinstance(value, (list, tuple)):
            for member in value:
                yield from _secrets({"": member})
        elif isinstance(value, str):
            yield from _within(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _leaves(member)
    elif value not in (None, "", True, False):
        yield str(value)


def _within(text: str) -> Iterator[tuple[str, str]]:
    """Give the secrets inside a value: assignments, such as mpirun's ``-x TOKEN=...``, and passwords of URLs."""
    for found in _ASSIGNMENT.finditer(text):
        if is_secret(found[1], found[2]):
            yield found[1], found[2].strip("\"'")
    for found in _USERINFO.finditer(text):
        user, colon, password = found["user"].partition(":")
        for secret in (password,) if colon else (user,):
            if _is_distinct(secret):
                yield from (("", secret), ("", _unquoted(secret)))


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text)


def _spellings(value: str) -> Iterator[str]:
    """Give how a value may be written in a text."""
    from urllib.parse import quote, quote_plus

    for text in {value, value.strip(), *(line.strip() for line in value.splitlines())}:
        if not _is_distinct(text):
            continue
        as_json = json.dumps(text)[1:-1]
        yield from (text, repr(text)[1:-1], as_json, json.dumps(text, ensure_ascii=False)[1:-1])
        yield json.dumps(as_json)[1:-1]
        yield text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        yield from (quote(text, safe="", errors="surrogateescape"), quote(text, errors="surrogateescape"))
        yield quote_plus(text, errors="surrogateescape")
