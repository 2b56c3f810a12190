"""Which TensorFlow the program will import. Looks at names of folders only; imports nothing."""

from __future__ import annotations

import os
import sys

#: Distributions that bring the package ``tensorflow`` (PyPI), as their folders spell them.
_DISTRIBUTIONS = frozenset(
    {
        "intel_tensorflow",
        "tensorflow",
        "tensorflow_aarch64",
        "tensorflow_cpu",
        "tensorflow_cpu_aws",
        "tensorflow_gpu",
        "tensorflow_intel",
        "tensorflow_macos",
        "tensorflow_rocm",
        "tf_nightly",
        "tf_nightly_cpu",
    }
)
_SUFFIX = ".dist-info"


def find(python: str) -> tuple[int, int] | None:
    """Give the major and minor version that ``python`` imports: this interpreter, or an overlay of it (`overlay`)."""
    folders = list(sys.path)
    if python != sys.executable:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        folders.insert(0, os.path.join(os.path.dirname(os.path.dirname(python)), "lib", version, "site-packages"))
    return next(filter(None, map(_version_in, folders)), None)


def _version_in(folder: str) -> tuple[int, int] | None:
    found = []
    try:
        for name in os.listdir(folder):
            distribution, _, version = name.partition("-")
            numbers = version.split(".")[:2]
            if distribution in _DISTRIBUTIONS and name.endswith(_SUFFIX) and all(map(str.isdecimal, numbers)):
                installed = os.stat(os.path.join(folder, name)).st_mtime
                found.append((installed, (int(numbers[0]), int(numbers[1]))))
    except OSError:
        return None
    # Two of them share the package's folder: what is in it belongs to the one that was installed last.
    return max(found)[1] if found else None
