"""A hatchling hook that compiles the pipe reader into the wheel, which is then specific to this platform.

One binary works with every Python and every TensorFlow, so the wheel's tag is ``py3-none-<platform>``. Without a C++
compiler, and on other systems than Linux, the wheel is pure Python, and the binary is compiled on first use.

``CXX`` and ``AUDITWHEEL_PLAT``, which the manylinux images set, name a compiler for another platform and that platform.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BinaryHook(BuildHookInterface):  # type: ignore[misc]
    """A hook that compiles the binary before the wheel is built, and removes the temporary file afterwards."""

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the binary, except for an editable installation, whose sources may change."""
        if version == "editable" or sys.platform != "linux":
            return
        binary = self._binary_module()
        self._folder = tempfile.mkdtemp()
        path = str(Path(self._folder) / "pipe_reader.so")
        try:
            binary.build(binary.find_compiler(), path, "-s")
        except binary.NoBinaryError as error:
            self.app.display_warning(f"the wheel does not contain the binary that reads pipes: {error}")
            return
        build_data["force_include"][path] = "scriptmode_runtime/tensorflow/native/pipe_reader.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag(Path(path))}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the compiled file, which the wheel now contains."""
        if self._folder:
            shutil.rmtree(self._folder)

    def _binary_module(self) -> ModuleType:
        """Load the runtime's module that compiles the binary; before the installation it cannot be imported by name."""
        module = ModuleType("binary")
        module.__file__ = str(Path(self.root) / "entrypoints/scriptmode_runtime/tensorflow/binary.py")
        SourceFileLoader("binary", module.__file__).exec_module(module)
        return module


def _platform_tag(binary: Path) -> str:
    """Return the wheel's platform: the named one, else manylinux2014, or that of a later glibc that it needs."""
    # A machine whose libstdc++ is older than the compiler's compiles the operations, as one without a binary does.
    tag = sysconfig.get_platform()
    if platform.libc_ver()[0] == "glibc":
        needed = max(17, *map(int, re.findall(rb"GLIBC_2\.(\d+)", binary.read_bytes())))
        tag = tag.replace("linux", f"manylinux_2_{needed}", 1)
    return os.environ.get("AUDITWHEEL_PLAT") or tag.replace("-", "_").replace(".", "_")
