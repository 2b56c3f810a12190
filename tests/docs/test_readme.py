"""The directories, targets and files that the README names exist."""

import ast
import re
import sys

import pytest
from docs.documents import CONTRIBUTING, README, ROOT, WITH_CODE, blocks, label, links

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = README.read_text()


@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_every_python_block_is_python(document):
    for block in blocks(document):
        if block.language == "python":
            ast.parse(block.text, filename=f"line {block.line}")


def test_every_directory_that_the_readme_names_exists():
    folders = re.findall(r"^\| `([a-z_/]+)` \|", TEXT, re.MULTILINE)
    assert "sdk/scriptmode" in folders
    for name in folders:
        assert (ROOT / name).is_dir(), name


def test_every_target_of_make_that_a_document_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        document: set(re.findall(r"`make ([a-z-]+)`|^\$ make ([a-z-]+)", document.read_text(), re.MULTILINE))
        for document in (README, CONTRIBUTING)
    }
    named = {document: {name for pair in pairs for name in pair if name} for document, pairs in named.items()}
    assert {"demo", "test", "bench", "docs", "screens"} <= named[README] <= targets
    assert {"light", "lint", "check", "test", "test-all", "bench"} <= named[CONTRIBUTING] <= targets


def test_every_file_that_contributors_are_shown_exists():
    paths = re.findall(r"(?<![\w./])(?:tests|sdk|entrypoints)/[\w/.]*\w", CONTRIBUTING.read_text())
    assert "tests/sdk/test_distribution.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_links_every_guide_and_every_notebook():
    for folder, pattern in (("sdk/docs/guides", "*.md"), ("notebooks", "*.ipynb")):
        for path in (ROOT / folder).glob(pattern):
            assert f"({folder}/{path.name})" in TEXT, path.name


def test_links_of_the_package_page_lead_to_the_repository(tmp_path):
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"][
        "fancy-pypi-readme"
    ]
    page = tmp_path / "page.md"
    text = TEXT
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    page.write_text(text)
    found = list(links(page))
    assert [target for target in found if not target.startswith(("https://", "#"))] == []
    assert "https://github.com/scriptmode/scriptmode/blob/main/sdk/docs/guides/data.md" in found
    assert "https://raw.githubusercontent.com/scriptmode/scriptmode/main/sdk/docs/pictures/live.svg" in found


def test_no_placeholder_is_left():
    for document in WITH_CODE:
        assert not re.findall(r"^[A-Z_]{6,}$", document.read_text(), re.MULTILINE)
