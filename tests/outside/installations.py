"""Environments into which a user installs scriptmode, outside of any checkout."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
#: Where programs of Debian are.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: What documents use beside scriptmode and its extras.
TOOLS = {"pytest", "mlflow-skinny", "wandb"}


class InterpreterMissingError(Exception):
    """No interpreter of a version was found or could be installed."""


@dataclass(frozen=True)
class Installation:
    """What a user installs: a version of Python, and extras of scriptmode."""

    python: str
    extras: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join((self.python, *self.extras))

    def has(self, needs: Sequence[str]) -> bool:
        """Return whether the blocks of a document that need these things can be run; large extras are never added."""
        return set(needs) & {"tensorflow", "mpi"} <= set(self.extras)


BARE = Installation("3.9")
INSTALLATIONS = (BARE, Installation("3.11", ("tensorflow", "mpi")), Installation("3.13", ("tensorflow",)))


@dataclass(frozen=True)
class Environment:
    """A virtual environment in which scriptmode is installed."""

    folder: Path

    @property
    def python(self) -> str:
        """The path of its interpreter."""
        return str(self.folder / "bin" / "python")

    def variables(self, home: Path) -> dict[str, str]:
        """Return all variables of a user whose home directory this is; create it, with a directory for temporary files."""
        temporary = home / "tmp"
        temporary.mkdir(parents=True)
        return {
            "PATH": f"{self.folder / 'bin'}:{SYSTEM_PATH}", "HOME": str(home), "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
        }  # fmt: skip


@dataclass(frozen=True)
class Builder:
    """Builds the distributions of the checkout, each once, or takes the ``given`` ones, and installs them in ``folder``."""

    folder: Path
    given: Path | None = None
    made: set[Environment] = field(default_factory=set)

    @cached_property
    def sdist(self) -> Path:
        """The source distribution."""
        return next(self.given.glob("*.tar.gz")) if self.given else self._build("--sdist", ROOT)

    @cached_property
    def wheels(self) -> list[Path]:
        """The wheels: one, built in the checkout, or those that were given."""
        return sorted(self.given.glob("*.whl")) if self.given else [self._build("--wheel", ROOT)]

    @property
    def wheel(self) -> Path:
        """The wheel for this machine."""
        return next(wheel for wheel in self.wheels if wheel.stem.endswith((platform.machine(), "any")))

    @cached_property
    def wheel_of_sdist(self) -> Path:
        """The wheel, built from the source distribution alone."""
        return self._build("--wheel", self.sdist, "of-sdist")

    def environment(
        self, installation: Installation, additional: Sequence[str] = (), wheel: Path | None = None
    ) -> Environment:
        """Return an environment with the wheel and its extras; ``additional`` are further extras and `TOOLS`."""
        wheel = wheel or self.wheel
        environment = Environment(self.folder / "-".join(("env", wheel.parent.name, str(installation), *additional)))
        if environment not in self.made:
            python = find_interpreter(installation.python)
            uv("venv", "--quiet", "--seed", "--clear", "--python", python, environment.folder)
            extras = ",".join((*installation.extras, *(set(additional) - TOOLS)))
            requirements = [f"scriptmode[{extras}] @ {wheel.as_uri()}", *(set(additional) & TOOLS)]
            uv("pip", "install", "--quiet", "--python", environment.python, *requirements)
            self.made.add(environment)
        return environment

    def _build(self, kind: str, source: Path, name: str = "dist") -> Path:
        folder = self.folder / name
        before = set(folder.glob("*"))
        uv("build", "--quiet", kind, "--python", sys.executable, "--out-dir", folder, source)
        (built,) = {*folder.glob("*.whl"), *folder.glob("*.tar.gz")} - before
        return built


def uv(*arguments: str | Path) -> str:
    """Run uv with this machine's caches and package indexes; return what it prints."""
    done = subprocess.run(
        [find_uv_bin(), *map(str, arguments)],
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, cwd="/",
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"uv {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def find_interpreter(version: str) -> str:
    """Return an interpreter of this version: on PATH, of pyenv, or one that uv installs; raise `InterpreterMissingError`."""
    for candidate in _candidates(version):
        if _version(candidate) == version:
            return candidate
    try:
        uv("python", "install", version)
        return uv("python", "find", "--managed-python", version).strip()
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        raise InterpreterMissingError(
            f"Python {version} is missing: neither this environment nor PATH nor ~/.pyenv/versions has it, and uv could "
            f"not install it ({lines[1]} ... {lines[-1]}). Install it (on Debian: apt install python{version}, if the "
            "release has it), and run the tests again."
        ) from error


def _candidates(version: str) -> Iterator[str]:
    yield str(Path(sys.base_prefix, "bin", f"python{version}"))
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(f"python{version}", path=folder)
        if found:
            yield found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob(f"versions/{version}.*/bin/python{version}")))


def _version(python: str) -> str | None:
    """Return the version of an interpreter, such as 3.11; ``None`` if it does not run, as pyenv's shim of another one."""
    try:
        done = subprocess.run(
            [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            check=False, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
