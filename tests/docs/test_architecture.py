"""The pages about the architecture show the packages and name the modules that the code has."""

import re

from docs.documents import DOCS, ROOT

GUIDE = (DOCS / "guides" / "architecture.md").read_text()
PACKAGES = (DOCS / "reference" / "packages.md").read_text()
PAGES = f"{GUIDE}{PACKAGES}{(DOCS / 'reference' / 'changing.md').read_text()}"
ROOTS = [
    ROOT / root for root in ("sdk/scriptmode", "sdk", "entrypoints/scriptmode_runtime", "", "sdk/scriptmode_local")
]


def found(path):
    """Return the file or directory that a path on a page names, or ``None``."""
    return next((root / path for root in ROOTS if (root / path).exists()), None)


def test_the_picture_shows_the_layers_of_the_packages():
    contract = (ROOT / "pyproject.toml").read_text().partition('id = "packages"')[2].partition("]")[0]
    assert re.findall(r"│ (scriptmode\w*) +│$", GUIDE, re.MULTILINE) == re.findall(r"scriptmode\w*", contract)


def test_every_package_has_a_row():
    rows = set(re.findall(r"`([\w.]+)`", " ".join(re.findall(r"^\| (`[^|]+)", PACKAGES, re.MULTILINE))))
    inits = [*ROOT.glob("sdk/scriptmode*/*/__init__.py"), *ROOTS[2].glob("*/__init__.py")]
    names = {path.parent.name for path in inits} - {"_core", "_engine"}
    names |= {f"_core.{path.parent.name}" for path in ROOTS[0].glob("_core/*/__init__.py")}
    assert sorted(names - rows) == []


def test_every_path_exists():
    paths = {*re.findall(r"`([\w/]+(?:/|\.py))`", PAGES), *re.findall(r"(?<= )_[\w/]+(?:\.py)?", GUIDE)}
    assert len(paths) > 40
    assert sorted(path for path in paths if found(path) is None) == []


def test_every_function_that_a_page_names_is_in_its_module():
    pairs = re.findall(r"`([\w/]+\.py)`\s+`([\w.]+)`", PAGES)
    assert len(pairs) > 30
    defined = r"^\s*(?:def|class) {0}\b|^{0}\b"
    names = [(path, name) for path, dotted in pairs for name in dotted.split(".")]
    missing = [n for n in names if not re.search(defined.format(n[1]), found(n[0]).read_text(), re.MULTILINE)]
    assert missing == []
