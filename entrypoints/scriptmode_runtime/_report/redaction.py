"""Hide secrets in the launcher's own texts: log lines, plans, failure files, messages to other hosts. Pure.

A hyperparameter or variable is a secret by its name: password, secret, token, API key, access key, private key,
credential and the like, but not a file's, a count's or a tokenizer's (``secret_file``, ``max_tokens``, ``eos_token``).
``******`` replaces

* its value, anywhere in a text, also in the spelling of JSON, Python and URLs, and line by line;
* a value shorter than six characters, or an everyday word such as ``default``, only directly after its own name
  (``--pin 1234``, ``"pin": "1234"``): anywhere else it is more likely another word, and hiding it would spoil the text;
* the text between ``//`` and ``@`` of a URL, in any text.

A script's own output is never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scriptmode_runtime._values.secret_names import MASK, USERINFO, is_secret, without_userinfo

#: Shorter values, and these words, cannot be distinguished from any other text.
_SHORTEST = 6
_EVERYDAY = frozenset(
    {"default", "disabled", "enabled", "localhost", "optional", "password", "required", "secret", "unknown", "username"}
)
#: The separators between a name and its value in a command line, an assignment, JSON, or JSON inside JSON.
_SEPARATOR = r"""[\\"'=:,\s]{1,8}"""
_ASSIGNMENT = re.compile(r"""(?<![\w.])([A-Za-z_][\w.-]{0,200})=("[^"]*"|'[^']*'|[^\s;&,"']+)""")


class Redaction:
    """A function that hides the secrets among ``named`` values, and all ``values``, in texts."""

    def __init__(self, *named: Mapping[str, Any], values: Iterable[str] = ()) -> None:
        pairs = [*(pair for mapping in named for pair in _secrets(mapping)), *(("", value) for value in values)]
        anywhere = {spelled for _, value in pairs if _is_distinct(value) for spelled in _spellings(value)}
        longest_first = sorted(anywhere, key=lambda spelled: (-len(spelled), spelled))
        self._anywhere = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._behind_name = [
            re.compile(rf"((?<![A-Za-z0-9])(?i:{re.escape(name)}){_SEPARATOR}){re.escape(value)}(?![A-Za-z0-9])")
            for name, value in dict.fromkeys(pairs)
            if name and not _is_distinct(value)
        ]

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        if self._anywhere:
            text = self._anywhere.sub(MASK, text)
        for pattern in self._behind_name:
            text = pattern.sub(rf"\g<1>{MASK}", text)
        return without_userinfo(text)

    def document(self, document: Any, name: str = "") -> Any:
        """Return a JSON document without secrets; what is named as one is hidden however short it is."""
        if isinstance(document, dict):
            return {key: self.document(value, str(key)) for key, value in document.items()}
        if isinstance(document, tuple) and hasattr(document, "_fields"):
            return type(document)(*map(self.document, document))
        if isinstance(document, (list, tuple)):
            hidden = [self.document(word, _option(before)) for before, word in zip(("", *document), document)]
            return type(document)(hidden)
        if name and document and is_secret(name, document):
            return MASK
        return self(document) if isinstance(document, str) else document


def _option(word: object) -> str:
    return word.lstrip("-") if isinstance(word, str) and word.startswith("-") else ""


def _is_distinct(value: str) -> bool:
    return len(value.strip()) >= _SHORTEST and value.lower() not in _EVERYDAY


def _secrets(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values of secrets; the name is "" for a value that is a secret by its position in a text."""
    for name, value in named.items():
        if is_secret(str(name), value):
            yield from ((str(name), leaf) for leaf in _leaves(value))
        elif isinstance(value, dict):
            yield from _secrets(value)
        elif isinstance(value, (list, tuple)):
            for before, member in zip(("", *value), value):
                yield from _secrets({_option(before): member})
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
    """Yield the secrets inside a value: assignments, such as mpirun's ``-x TOKEN=...``, and passwords of URLs."""
    from urllib.parse import unquote

    for match in _ASSIGNMENT.finditer(text):
        if is_secret(match[1], match[2]):
            yield match[1], match[2].strip("\"'")
    for match in USERINFO.finditer(text):
        user, colon, password = match["user"].partition(":")
        for secret in (password,) if colon else (user,):
            if _is_distinct(secret):
                yield from (("", secret), ("", unquote(secret)))


def _spellings(value: str) -> Iterator[str]:
    """Yield the spellings of a value in a text."""
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
