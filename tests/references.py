"""The projects we are measured against, each installed into an environment of its own, kept between runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path


def environment(*requirements: str) -> Path:
    """Give the ``bin`` folder of a virtual environment with these requirements; made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scriptmode" / "benchmarks"
    key = hashlib.sha256(f"{sys.version}{requirements}".encode()).hexdigest()[:16]
    folder = cache / key
    if not (folder / "done").exists():
        print(f"  installing {' '.join(requirements)} into an environment of its own", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-qq", *requirements], check=True)
        (folder / "done").touch()
    return folder / "bin"
