"""The page about the architecture shows the packages and names the modules that the code has."""

import re

import pytest
from docs.documents import DOCS, ROOT
from tests.house import architecture

PAGE = (DOCS / "guides" / "architecture.md").read_text()
#: The page with what a change touches.
CHANGES = (DOCS / "reference" / "changing.md").read_text()
#: Directories that paths on the page are relative to.
ROOTS = (ROOT / "sdk/scriptmode", ROOT / "entrypoints/scriptmode_runtime", ROOT)


def found(path):
    """Return the file or directory that a path on the page names, or ``None``."""
    return next((root / path for root in ROOTS if (root / path).exists()), None)


@pytest.mark.parametrize("picture", architecture.PICTURED)
def test_a_picture_of_the_packages_shows_their_imports(picture):
    drawn = (architecture.PICTURES / picture).read_text(encoding="utf-8")
    assert drawn == architecture.render(picture), f"imports between packages changed; run: {architecture.COMMAND}"


@pytest.mark.parametrize("picture", architecture.PICTURED)
def test_every_package_of_a_picture_has_a_row_in_the_page(picture):
    first_cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    rows = set(re.findall(r"`([\w.]+)`", first_cells)) | {"scriptmode_runtime"}
    names = {name for box in architecture.packages(picture).boxes for name in box.split(", ")}
    assert sorted(names - rows) == []


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


def test_a_graph_has_no_arrow_that_others_imply_and_no_circle():
    graph = architecture.Graph()
    for begin, end in (("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")):
        architecture._add(graph, begin, end, lazy=False)
    reduced = graph.reduced()
    assert sorted(reduced.down) == [("a", "b"), ("b", "c")]
    assert sorted(reduced.up) == [("c", "a")]
    assert reduced.levels() == {"a": 2, "b": 1, "c": 0}
