"""Programs of Slurm as shell scripts, for tests that need one answer of one of them."""

from pathlib import Path


class Programs:
    """A directory on PATH; ``$0`` is a program's path in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, script: str) -> None:
        """Create or replace a program."""
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
