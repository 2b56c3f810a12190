"""What a package index and its users' installers require of distributions."""

import json
import re
import sys

from outside.installations import uv


def run_tool(*command):
    """Run a program of a package index in an environment of its own; return what it prints."""
    return uv("tool", "run", "--quiet", "--python", sys.executable, *command)


def check_platform_tag(wheel):
    """Assert that auditwheel finds no need of a later glibc than the wheel's tag promises, in a binary for its machine."""
    shown = json.loads(run_tool("auditwheel", "show", "--json", wheel))
    names = (shown["sym_tag"], wheel.stem.rpartition("-")[2])
    tags = [re.fullmatch(r"manylinux_(\d+)_(\d+)_(x86_64|aarch64)", name) for name in names]
    assert all(tags), names
    needed, promised = ((machine, int(major), int(minor)) for major, minor, machine in (tag.groups() for tag in tags))
    assert promised[0] == needed[0]
    assert promised >= needed
    assert set(shown["external_libs"]) == {"libtensorflow_framework.so.2"}
