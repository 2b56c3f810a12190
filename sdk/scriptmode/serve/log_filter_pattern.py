"""Filter patterns of CloudWatch Logs for text: terms, ``?term`` for any of several, ``-term``, ``%regex%``. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scriptmode.serve.aws_json import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

_TERM = re.compile(r'\s*([?-]?)(?:"((?:[^"\\]|\\.)*)"|%([^%]*)%|([^\s"%]+))')
#: Seconds that a regular expression may take for one line, which then does not match.
_SECONDS = 0.1


def parse_pattern(pattern: str) -> Callable[[str], bool]:
    """Return whether a line matches, as a function; raise `ApiError` for a pattern that is not of text."""
    pattern = pattern.strip()
    if pattern[:1] in ("{", "["):
        raise _invalid("patterns of JSON and of columns are not served; use terms")
    signs: dict[str, list[Callable[[str], bool]]] = {"": [], "?": [], "-": []}
    position = 0
    while position < len(pattern):
        found = _TERM.match(pattern, position)
        if found is None:
            raise _invalid(f"it cannot be read at {pattern[position:]!r}")
        signs[found[1]].append(_term(found))
        position = found.end()

    def matches(line: str) -> bool:
        if any(term(line) for term in signs["-"]):
            return False
        # With required terms, optional ones have no effect. (Filter pattern syntax, CloudWatch Logs user guide)
        if signs[""] or not signs["?"]:
            return all(term(line) for term in signs[""])
        return any(term(line) for term in signs["?"])

    return matches


def _term(found: re.Match[str]) -> Callable[[str], bool]:
    if found[3] is not None:
        # Few patterns have one.
        import regex

        try:
            expression = regex.compile(found[3])
        except regex.error as error:
            raise _invalid(f"{found[3]!r} is not a regular expression: {error}") from error
        return lambda line: _search(expression, line)
    text = re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else found[4]
    return lambda line: text in line


def _search(expression: Any, line: str) -> bool:
    try:
        return expression.search(line, timeout=_SECONDS) is not None
    except TimeoutError:
        return False


def _invalid(problem: str) -> ApiError:
    return ApiError("InvalidParameterException", f"Invalid filter pattern: {problem}.")
