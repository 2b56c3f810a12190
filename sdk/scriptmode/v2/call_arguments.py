"""The arguments of a call of an estimator: names of v1, and what has no effect or no counterpart. Pure."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from scriptmode.core.spec.distribution import UNSUPPORTED
from scriptmode.core.spec.older_names import GONE, IGNORED, RENAMED
from scriptmode.v2.source_blocks import Edit, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.v2.source_blocks import Block

#: A comment that is a whole line, with the line break before it.
_COMMENT_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*#[^\r\n]*")
_COMMA = re.compile(r"[ \t]*,?[ \t]*")


def changed_arguments(block: Block, call: ast.Call) -> tuple[set[Edit], list[tuple[int, str, str]]]:
    """Return the edits of a call, and the arguments without a counterpart: their offsets, names and the advice."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    given.sort(key=block.span)
    edits: set[Edit] = set()
    missing: list[tuple[int, str, str]] = []
    no_effect = {each for each in call.keywords if each.arg in IGNORED or (each.arg in GONE and _is_none(each))}
    removed = [each in no_effect for each in given]
    for argument in call.keywords:
        name, (start, _) = argument.arg or "", block.span(argument)
        if name in RENAMED:
            edits.add(Edit(start, start + len(name), RENAMED[name]))
        if name in IGNORED and ast.unparse(argument.value) not in ("None", "True"):
            missing.append((start, f"{name}=", IGNORED[name]))
        if name in GONE and not _is_none(argument):
            missing.append((start, f"{name}=", GONE[name]))
        if name in ("distribution", "distributions"):
            missing += [
                (start, f"{name}={{{key!r}: ...}}", UNSUPPORTED[key]) for key in _keys(argument) if key in UNSUPPORTED
            ]
    return edits | set(_removals(block, given, removed)), missing


def _is_none(argument: ast.keyword) -> bool:
    return isinstance(argument.value, ast.Constant) and argument.value.value is None


def _keys(argument: ast.keyword) -> list[str]:
    keys = argument.value.keys if isinstance(argument.value, ast.Dict) else []
    return [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def _removals(block: Block, given: list[ast.expr | ast.keyword], removed: list[bool]) -> Iterator[Edit]:
    """Yield an edit for each run of arguments to remove, with the comma that becomes superfluous.

    Comments that are whole lines are unchanged.
    """
    spans = [block.span(each) for each in given]
    index = 0
    while index < len(given):
        if not removed[index]:
            index += 1
            continue
        first = index
        while index < len(given) and removed[index]:
            index += 1
        start, end = spans[first][0], spans[index - 1][1]
        ends_a_line = index < len(given) and given[index].lineno != given[index - 1].end_lineno
        begins_a_line = not first or given[first - 1].end_lineno != given[first].lineno
        with_comma_before = first > 0 and (index == len(given) or (ends_a_line and not begins_a_line))
        between = spans[first - with_comma_before : index + (not with_comma_before)]
        gaps = [block.text[left:right] for (_, left), (right, _) in zip(between, between[1:])]
        comments = [comment for gap in gaps for comment in _COMMENT_LINE.findall(gap)]
        if with_comma_before:
            yield _removal_after_comma(block, Edit(between[0][1], end, ""), gaps[0], comments)
        else:
            replacement = "".join(f"{each.lstrip()}{_indentation(each)}" for each in comments)
            yield Edit(start, between[-1][0] if index < len(given) else end, replacement)


def _removal_after_comma(block: Block, edit: Edit, gap: str, comments: list[str]) -> Edit:
    """Return an edit from the end of the argument before; comments between need its comma, not that after the edit."""
    if not comments:
        return edit
    rest = _COMMA.match(block.text, edit.end)
    end = rest.end() if rest else edit.end
    ends_a_line = block.text[end : end + 1] in ("\r", "\n")
    first_line = split_lines(gap)[0].rstrip("\r\n")
    return Edit(edit.start, end, "".join([first_line, *comments, "" if ends_a_line else _indentation(comments[-1])]))


def _indentation(comment: str) -> str:
    """Return the line break and the indentation of a comment."""
    return comment[: len(comment) - len(comment.lstrip())]
