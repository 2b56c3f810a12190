"""Write the image's software bill of materials to stdout, as CycloneDX 1.5 in JSON; a step of the Dockerfile.

The document lists Debian packages (from lines of name, version and architecture, separated by tabs) and the Python
distributions of environments. Equal packages produce equal bytes: the document has neither a time nor a serial number.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Longer values of the field License are the texts of licenses, not their names.
LONGEST_LICENSE_NAME = 100

Component = dict[str, Any]


def os_release() -> dict[str, str]:
    """Return the fields of os-release(5)."""
    pairs = (line.partition("=") for line in Path("/etc/os-release").read_text().splitlines())
    return {name: value.strip("\"'") for name, _, value in pairs}


def library(name: str, version: str, purl: str, **more: object) -> Component:
    """Return the component of a package; ``purl`` is its package URL."""
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def debian_packages(listed: Path, release: dict[str, str]) -> Iterator[Component]:
    """Yield a component for each package of Debian or of a distribution derived from it."""
    owner, distribution = release["ID"], f"{release['ID']}-{release['VERSION_ID']}"
    for line in listed.read_text().splitlines():
        name, version, architecture = line.split("\t")
        purl = f"pkg:deb/{owner}/{quote(name, safe='')}@{quote(version, safe='')}?arch={architecture}"
        yield library(name, version, f"{purl}&distro={distribution}")


def python_distributions(environment: Path) -> Iterator[Component]:
    """Yield a component for each Python distribution of an environment."""
    folders = [str(folder) for folder in environment.glob("lib/python3.*/site-packages")]
    for distribution in importlib.metadata.distributions(path=folders):
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        version = distribution.version
        purl = f"pkg:pypi/{name}@{quote(version, safe='')}"
        yield library(name, version, purl, **licenses(dict(distribution.metadata.items())))


def licenses(metadata: dict[str, str]) -> dict[str, object]:
    """Return the field ``licenses`` for a license expression or a short license name, else an empty dict."""
    if expression := metadata.get("License-Expression"):
        return {"licenses": [{"expression": expression}]}
    name = (metadata.get("License") or "").strip()
    if name and "\n" not in name and len(name) <= LONGEST_LICENSE_NAME:
        return {"licenses": [{"license": {"name": name}}]}
    return {}


def main() -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--debian", required=True, metavar="FILE", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="ENVIRONMENT", type=Path)
    given = parser.parse_args()
    release = os_release()
    python = [each for environment in given.python for each in python_distributions(environment)]
    found = [*debian_packages(given.debian, release), *python]
    unique = {each["bom-ref"]: each for each in found}
    system = {"type": "operating-system", "bom-ref": "os", "name": release["ID"], "version": release["VERSION_ID"]}
    image = {"type": "container", "bom-ref": "image", "name": given.name, "version": given.version}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": image},
        "components": [system, *(unique[reference] for reference in sorted(unique))],
    }
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
