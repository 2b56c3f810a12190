"""Write the table of AWS's images for TensorFlow training and for the debugger's rules from those in sagemaker-core.

    python .ci/image_table.py                       from the newest version; `make image-table` does this
    python .ci/image_table.py 2.27.0 --output PATH  from that version, into another file

The package is downloaded, not installed. The table has the package's form, but registries that several releases have in
common are there once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

PACKAGE = "sagemaker-core"
MEMBERS = "sagemaker/core/image_uri_config/{}.json"
TABLE = Path(__file__).parents[1] / "sdk/scriptmode/_core/aws/tensorflow_images.json"


def main() -> None:
    """Download the package and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", help=f"version of {PACKAGE}; by default the newest")
    parser.add_argument("--output", type=Path, default=TABLE, help="file to write")
    arguments = parser.parse_args()
    requirement = f"{PACKAGE}=={arguments.version}" if arguments.version else PACKAGE
    with tempfile.TemporaryDirectory() as folder:
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
        subprocess.run((*pip, "--dest", folder, requirement), check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            training = json.loads(files.read(MEMBERS.format("tensorflow")))["training"]
            rules = json.loads(files.read(MEMBERS.format("debugger")))["versions"]["latest"]
    source = f"{PACKAGE} {wheel.name.split('-')[1]}"
    table = {
        "source": source,
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        **share_registries(training),
        "rules": rules,
    }
    arguments.output.write_text(json.dumps(table, indent=1) + "\n")


def share_registries(training: dict[str, Any]) -> dict[str, Any]:
    """Return the table with numbers of registries in place of the registries."""
    registries: list[dict[str, str]] = []

    def share(entry: dict[str, Any]) -> dict[str, Any]:
        if "repository" not in entry:
            return {python: share(its) for python, its in entry.items()}
        if entry["registries"] not in registries:
            registries.append(entry["registries"])
        return {**entry, "registries": registries.index(entry["registries"])}

    versions = {version: share(entry) for version, entry in training["versions"].items()}
    return {
        "registries": registries,
        "training": {"version_aliases": training["version_aliases"], "versions": versions},
    }


if __name__ == "__main__":
    main()
