"""Versions of TensorFlow and Python, as ``framework_version`` and ``py_version`` spell them."""

from __future__ import annotations

import re

from scriptmode.errors import invalid


def check_framework_version(version: object) -> None:
    """Raise `SpecError` unless the value is None, or a version of TensorFlow such as ``2.19``."""
    if isinstance(version, (int, float)):
        raise invalid("framework_version", f"is {version!r}", f"give a string: {str(version)!r}")
    if version is not None and not (isinstance(version, str) and re.fullmatch(r"\d+(\.[\w+-]+)*", version)):
        raise invalid("framework_version", f"is {version!r}", "give a version of TensorFlow such as '2.19'")


def check_py_version(version: object) -> None:
    """Raise `SpecError` unless the value is None, or a version of Python such as ``py311`` or ``py3``."""
    if version is not None and not (isinstance(version, str) and re.fullmatch(r"py\d+", version)):
        raise invalid("py_version", f"is {version!r}", "give a version such as 'py311', which is Python 3.11")


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; a part with other characters has none."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def is_release_of(installed: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, or one of its patches: 2.15.1 is 2.15."""
    return installed == wanted or installed.startswith(f"{wanted}.")
