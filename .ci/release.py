"""Make the files of a release and check them: ``make release VERSION=0.1.0``. RELEASING.md describes the rest.

It makes in ``dist/VERSION``:

- the source distribution, and from it a wheel for each of `MACHINES`, compiled by Zig for systems with `GLIBC` or newer
- the documentation as HTML
- ``SHA256SUMS`` of all these

and runs ``tests/outside`` with these distributions. Nothing is committed, tagged or uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[1]
CHANGELOG, PROJECT = ROOT / "CHANGELOG.md", ROOT / "pyproject.toml"
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
MACHINES = ("x86_64", "aarch64")
#: The glibc of manylinux2014, which TensorFlow's own wheels need.
GLIBC = (2, 17)
ZIG_VERSION = "0.17.1"


class RefusedError(Exception):
    """There can be no release of this version; the text has the reason and the next step."""


@dataclass(frozen=True)
class Release:
    """A release: its version, its commit, and the time of that, in seconds since 1970, which files in archives get."""

    version: str
    commit: str
    time: str

    @property
    def folder(self) -> Path:
        """The directory of its files."""
        return ROOT / "dist" / self.version

    def run(self, *command: str | Path, **variables: str) -> None:
        """Run a command in the checkout."""
        environment = {**os.environ, "SOURCE_DATE_EPOCH": self.time, **variables}
        subprocess.run(list(map(str, command)), check=True, cwd=ROOT, env=environment)

    def uv(self, *command: str | Path, **variables: str) -> None:
        """Run uv, which builds and installs."""
        self.run(find_uv_bin(), *command, "--quiet", **variables)

    def environment(self, folder: Path, requirement: str | Path) -> Path:
        """Create an environment and return its interpreter."""
        self.uv("venv", "--python", sys.executable, folder)
        self.uv("pip", "install", "--python", folder / "bin/python", requirement)
        return folder / "bin/python"


def main() -> None:
    """Make the files of the version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="", help="the version, such as 0.1.0")
    parser.add_argument("--unchecked", action="store_true", help="do not run tests/outside")
    arguments = parser.parse_args()
    try:
        check(arguments.version)
    except RefusedError as error:
        sys.exit(f"release: {error}")
    release = Release(arguments.version, git("rev-parse", "HEAD"), git("log", "-1", "--format=%ct"))
    make(release)
    if not arguments.unchecked:
        release.run(sys.executable, "-m", "pytest", "tests/outside", "--distributions", release.folder)
    report(release)


def check(version: str) -> None:
    """Raise `RefusedError` if the version cannot be released from this checkout."""
    if not VERSION.fullmatch(version):
        raise RefusedError(f"VERSION={version!r} is not a version; give one such as 0.1.0 or 1.0.0rc1")
    if git("tag", "--list", f"v{version}"):
        raise RefusedError(f"the tag v{version} exists; give the next version")
    if changes := git("status", "--porcelain"):
        raise RefusedError(f"the checkout has changes; commit or remove them:\n{changes}")
    text = CHANGELOG.read_text()
    if f"## [{version}]" not in text or f'\nversion = "{version}"\n' not in PROJECT.read_text():
        raise RefusedError(f"CHANGELOG.md has no section {version}, or pyproject.toml another version; write both")
    if text.partition("## [Unreleased]\n")[2].partition("\n## ")[0].strip():
        raise RefusedError("CHANGELOG.md has entries below [Unreleased]; move them to the section of this version")


def make(release: Release) -> None:
    """Make all files of a release in its directory, which is emptied first."""
    shutil.rmtree(release.folder, ignore_errors=True)
    release.uv("build", "--sdist", "--python", sys.executable, "--out-dir", release.folder, ROOT)
    with tempfile.TemporaryDirectory() as folder:
        build_wheels(release, Path(folder))
        archive_documentation(release, Path(folder))
    (release.folder / ".gitignore").unlink(missing_ok=True)
    files = sorted(release.folder.iterdir())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (release.folder / "SHA256SUMS").write_text("".join(sums))


def build_wheels(release: Release, folder: Path) -> None:
    """Build a wheel for each machine from the source distribution alone, with the C++ compiler of Zig."""
    (sdist,) = release.folder.glob("*.tar.gz")
    zig = release.environment(folder / "zig", f"ziglang=={ZIG_VERSION}")
    (folder / "empty.cc").write_text("#include <string>\n")
    for machine in MACHINES:
        target = f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
        compiler = folder / f"c++-{machine}"
        compiler.write_text(f'#!/bin/sh\nexec {shlex.quote(str(zig))} -m ziglang c++ -target {target} "$@"\n')
        compiler.chmod(0o755)
        # The first program on a machine compiles libc++, for longer than the build of a wheel waits.
        release.run(compiler, "-O2", "-fPIC", "-shared", folder / "empty.cc", "-o", folder / "empty.so")
        tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
        build = ("build", "--wheel", "--python", sys.executable, "--out-dir", release.folder, sdist)
        release.uv(*build, CXX=str(compiler), AUDITWHEEL_PLAT=tag)
        if not list(release.folder.glob(f"*-{tag}.whl")):
            sys.exit(f"release: the wheel for {machine} has no binary: it was not compiled for {target}")


def archive_documentation(release: Release, folder: Path) -> None:
    """Build the documentation and archive it."""
    name = f"scriptmode-{release.version}-documentation"
    release.run(sys.executable, "-m", "sphinx", "-n", "-W", "-q", "-d", folder / "trees", "sdk/docs", folder / name)
    archive = release.folder / f"{name}.tar.xz"
    stable = ("--sort=name", f"--mtime=@{release.time}", "--owner=0", "--group=0", "--numeric-owner")
    release.run("tar", *stable, "--create", "--xz", f"--file={archive}", f"--directory={folder}", name)


def report(release: Release) -> None:
    """Print the files and the commands that publish them."""
    for path in sorted(release.folder.iterdir()):
        say(f"{path.stat().st_size:>12,} {path.relative_to(ROOT)}")
    tag, files = f"v{release.version}", f"dist/{release.version}"
    say(f"  git tag --annotate --message 'scriptmode {release.version}' {tag} {release.commit}")
    say(f"  git push origin {tag}\n  uv publish {files}/*.whl {files}/*.tar.gz")


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.check_output(("git", *arguments), cwd=ROOT, text=True).strip()  # noqa: S607


def say(text: str) -> None:
    """Print a line, in order with the output of the commands."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:  # it printed why
        sys.exit(f"release: exit code {error.returncode} of {shlex.join(error.cmd)}")
