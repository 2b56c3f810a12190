"""The user who owns a file, as messages name one."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def user_name(number: int) -> str:
    """Return a user by name, or by number where this machine has no name for it."""
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user with the number {number}"


def find_other_owner(path: Path) -> str:
    """Return the user who owns a file or directory; "" for this process's user, and where that is unknown."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return ""
    return "" if owner == os.geteuid() else user_name(owner)
