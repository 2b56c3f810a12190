"""The size of an installation in packages and megabytes, compared with the SageMaker SDK v2 and v3."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.references import environment

#: Other tests install v2; v3 has a gigabyte, and takes a minute on a new machine.
REFERENCES = amount({"v2": "sagemaker<3", "v3": "sagemaker>=3"}, smallest={"v2": "sagemaker<3"})
CHECKOUT = Path(__file__).parents[2]
#: Every environment has them, whatever is installed; names of their packages and of their files.
OWN = {"pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources"}


def run(folder: str) -> list[Figure]:
    ours = footprint(installed(Path(folder) / "scriptmode"))
    theirs = {version: footprint(environment(requirement)) for version, requirement in REFERENCES.items()}
    (packages, megabytes), others = ours, theirs.items()
    return [
        # Rich, which draws the live view, is four of them; regex, whose searches have a time limit, has 3 MB.
        Figure("packages of an installation", packages, "", 17),
        *(Figure(f"the same of sagemaker {version}", each, "") for version, (each, _) in others),
        Figure("its size", megabytes, "MB", 42),
        *(Figure(f"the same of sagemaker {version}", each, "MB") for version, (_, each) in others),
    ]


def installed(folder: Path) -> Path:
    """Install this checkout without extras into a fresh environment; give its ``bin``."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", str(CHECKOUT)], check=True)
    return folder / "bin"


def footprint(binaries: Path) -> tuple[int, float]:
    """Return the number of packages, and their megabytes without bytecode, which not every installer makes."""
    (site,) = binaries.parent.glob("lib/python*/site-packages")
    packages = {each.name.lower() for each in distributions(path=[str(site)])} - OWN
    size = sum(
        file.lstat().st_size
        for top in site.iterdir()
        if top.name.partition("-")[0] not in OWN
        for file in ([top] if top.is_file() else _files(top))
    )
    return len(packages), size / 1e6


def _files(folder: Path) -> list[Path]:
    return [Path(root) / name for root, _, names in os.walk(folder) for name in names if not name.endswith(".pyc")]
