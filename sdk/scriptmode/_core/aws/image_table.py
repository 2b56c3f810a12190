"""Which TensorFlow images AWS has for training: this project's table, and that of an installed ``sagemaker`` package.

``tensorflow_images.json`` is this project's. ``make image-table`` writes it from the newest ``sagemaker-core``, in that
package's own form, but with registries that several releases have in common once. A test compares the two.

Where ``sagemaker`` (version 2) or ``sagemaker-core`` is installed, its table is added, and prevails where both have an
entry. Its file is read; the package is not imported, which would take two seconds of CPU time.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_name("tensorflow_images.json")
#: Where the package has the table: version 2, version 3.
_INSTALLED = ("image_uri_config/tensorflow.json", "core/image_uri_config/tensorflow.json")


class Images(NamedTuple):
    """The images of a TensorFlow release with one Python: the account of each Region's registry, the repository."""

    registries: dict[str, str]
    repository: str


#: By the version of TensorFlow (``2.13`` is also ``2.13.0``), then by that of Python.
Releases = dict[str, dict[str, Images]]


class OwnTable(NamedTuple):
    """This project's table, and the image of the debugger's rules. ``date`` is the day on which it was made."""

    date: str
    releases: Releases
    accounts: frozenset[str]
    rules: Images


@functools.lru_cache(maxsize=1)
def own_table() -> OwnTable:
    """Return this project's table."""
    content = json.loads(_FILE.read_bytes())
    accounts = frozenset(account for registries in content["registries"] for account in registries.values())
    return OwnTable(content["date"], _parse(content), accounts, Images(**content["rules"]))


def read_releases() -> Releases:
    """Return the images that train; warn, once, of a table of the installed package that cannot be read."""
    return _add(_find_installed())


def _find_installed() -> Path | None:
    # Finds a package without importing it, also where only a part of version 3 (sagemaker-core) is installed. A module
    # that stands for sagemaker, as that of scriptmode.v2 does, is left out; ``None`` there forbids the import.
    is_forbidden = "sagemaker" in sys.modules and sys.modules["sagemaker"] is None
    spec = None if is_forbidden else PathFinder.find_spec("sagemaker")
    directories = (spec.submodule_search_locations if spec else None) or ()
    paths = (Path(directory, name) for name in _INSTALLED for directory in directories)
    return next((path for path in paths if path.is_file()), None)


@functools.lru_cache(maxsize=4)
def _add(installed: Path | None) -> Releases:
    own = own_table()
    if installed is None:
        return own.releases
    try:
        added = _parse(json.loads(installed.read_bytes()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"the table of AWS's images in {installed} cannot be read ({type(error).__name__}: {error})"
        warnings.warn(f"{text}; this project's own, of {own.date}, is used", stacklevel=1)
        return own.releases
    merged = {version: dict(images) for version, images in own.releases.items()}
    for version, by_python in added.items():
        images = merged.setdefault(version, {})
        for python, its in by_python.items():
            known = images[python].registries if python in images else {}
            images[python] = its._replace(registries={**known, **its.registries})
    return merged


def _parse(content: Any) -> Releases:
    """Return the images that train, of the content of a table: this project's or the package's."""
    shared, training = content.get("registries"), content["training"]
    releases: Releases = {}
    for version, entry in training["versions"].items():
        # There is one entry for all versions of Python, or one for each.
        by_python = dict.fromkeys(entry["py_versions"], entry) if "repository" in entry else entry
        releases[version] = {
            python: Images(shared[its["registries"]] if shared else its["registries"], its["repository"])
            for python, its in by_python.items()
        }
    return {**releases, **{short: releases[release] for short, release in training["version_aliases"].items()}}
