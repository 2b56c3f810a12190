"""What a package index and its users' installers require of distributions."""

import json
import re
import sys

from outside.installations import uv


def run_tool(*command):
    """Run a program of a package index in an environment of its own; return what it prints."""
    return uv("tool", "run", "--quiet", "--python", sys.executable, *command)


def check_platform_tag(wheel):
    """Assert that the wheel has the tag of manylinux2014, as its glibc allows; return what auditwheel shows of it."""
    shown = json.loads(run_tool("auditwheel", "show", "--json", wheel))
    machine = re.fullmatch(r"manylinux_\d+_\d+_(x86_64|aarch64)", shown["sym_tag"])[1]
    assert wheel.stem.endswith(f"-manylinux_2_17_{machine}")
    assert max(int(name.split(".")[1]) for name in shown["versioned_symbols"]["libc.so.6"]) <= 17
    assert set(shown["external_libs"]) == {"libtensorflow_framework.so.2"}
    return shown
