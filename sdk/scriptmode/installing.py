"""How this distribution is installed, which no package index has."""

from __future__ import annotations


def install(extra: str = "", *, python: str = "", options: str = "") -> str:
    """Give the command that installs scriptmode from its sources, with one of the extras of its pyproject.toml.

    ``python`` is the interpreter that is to have it, ``options`` are more of pip's.
    """
    words = [f"{python} -m pip" if python else "pip", "install", options, f"'.[{extra}]'" if extra else "."]
    return " ".join(filter(None, words)) + " in a checkout of scriptmode"
