"""The page about the architecture shows the packages and names the modules that the code has."""

import re

from docs.documents import DOCS, ROOT

PAGE = (DOCS / "guides" / "architecture.md").read_text()
#: The page with what a change touches.
CHANGES = (DOCS / "reference" / "changing.md").read_text()
ROOTS = (ROOT / "sdk/scriptmode", ROOT / "sdk", ROOT / "entrypoints/scriptmode_runtime", ROOT)


def found(path):
    """Return the file or directory that a path on the page names, or ``None``."""
    return next((root / path for root in ROOTS if (root / path).exists()), None)


def packages(folder):
    """Return the names of the packages in a directory."""
    return {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")}


def test_every_package_has_a_row_in_the_page():
    first_cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    rows = set(re.findall(r"`([\w.]+)`", first_cells))
    names = {path.parent.name for path in (ROOT / "sdk").glob("scriptmode_*/_*/__init__.py")} - {"_engine"}
    names |= packages("sdk/scriptmode") | packages("entrypoints/scriptmode_runtime")
    names |= {f"_core.{name}" for name in packages("sdk/scriptmode/_core")}
    assert sorted(names - rows - {"_core"}) == []


def test_every_path_in_the_page_exists():
    paths = set(re.findall(r"`([\w/]+/|[\w/]+\.py)`", f"{PAGE}{CHANGES}"))
    assert len(paths) > 20
    assert sorted(path for path in paths if found(path) is None) == []


def test_every_function_that_the_page_names_is_in_its_module():
    pairs = re.findall(r"`([\w/]+\.py)`\s+`([\w.]+)`", f"{PAGE}{CHANGES}")
    assert len(pairs) > 10
    missing = [
        f"{path}: {name}"
        for path, dotted in pairs
        for name in dotted.split(".")
        if not re.search(rf"^\s*(?:def|class) {name}\b|^{name}\b", found(path).read_text(), re.MULTILINE)
    ]
    assert missing == []
