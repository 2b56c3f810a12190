"""The command that ``mpirun`` runs on another host: written for a shell, parsed without one. Pure.

Open MPI 4 starts ``orted`` there and Open MPI 5 ``prted``, after lines that set and export variables; for a login shell
``sh`` or ``ksh`` inside ``( test ! -r ./.profile || . ./.profile; ... )`` (``plm_rsh_module.c``, ``plm_ssh_module.c``).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping

from scriptmode_runtime._values.errors import ClusterError
from scriptmode_runtime.plan import STOP_RANKS, ProcessSpec

NAME = "daemon"
#: Parameters for the program that starts daemons; each daemon requires it, though only mpirun uses it.
AGENTS = ("plm_rsh_agent", "plm_ssh_agent")
_PROGRAMS = ("orted", "prted")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-[^}]*)?\})")


def parse(command: str, environ: Mapping[str, str], cwd: str, agent: str) -> ProcessSpec:
    """Parse the daemon that ``command`` starts on a host with the variables ``environ`` and its own ``agent``.

    Raises `ClusterError` for anything that is not one of Open MPI's daemons.
    """
    env: dict[str, str] = {}
    argv: list[str] = []
    for words in _statements(command):
        assignment = _ASSIGNMENT.fullmatch(words[0]) if len(words) == 1 else None
        if assignment:
            env[assignment[1]] = _expanded(assignment[2], {**environ, **env})
        elif words[0] not in ("export", "(", "test"):
            argv = words
    if not argv or os.path.basename(argv[0]) not in _PROGRAMS:
        raise ClusterError(f"mpirun requests {command[:200]!r}, which starts none of {', '.join(_PROGRAMS)}")
    argv = [agent if before in AGENTS else word for before, word in zip(["", *argv], argv)]
    return ProcessSpec(NAME, tuple(argv), env, cwd, STOP_RANKS)


def _statements(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) != {";"}:
                words.append(word)
            elif words:
                yield words
                words = []
    except ValueError as error:
        raise ClusterError(f"mpirun's command for another host cannot be read: {error}") from error
    if words[-1:] == [")"]:
        words.pop()
    if words:
        yield words


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: environ.get(match[1] or match[2], ""), text)
