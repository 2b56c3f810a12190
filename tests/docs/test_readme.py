"""What the README shows is there."""

import ast
import re

import pytest
from docs.documents import README, ROOT, WITH_CODE, blocks, label

TEXT = README.read_text()


@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_every_python_block_is_python(document):
    for block in blocks(document):
        if block.language == "python":
            ast.parse(block.text, filename=f"line {block.line}")


def test_every_folder_the_readme_names_is_there():
    folders = re.findall(r"^\| `([a-z_/]+)` \|", TEXT, re.MULTILINE)
    assert "sdk/scriptmode" in folders
    for name in folders:
        assert (ROOT / name).is_dir(), name


def test_every_target_of_make_that_the_readme_names_is_there():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"`make ([a-z-]+)`", TEXT)) | set(re.findall(r"^\$ make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "bench", "docs", "screens"} <= named <= set(targets)


def test_every_guide_and_every_notebook_stands_in_the_readme():
    for folder, pattern in (("sdk/docs/guides", "*.md"), ("notebooks", "*.ipynb")):
        for path in (ROOT / folder).glob(pattern):
            assert f"({folder}/{path.name})" in TEXT, path.name


def test_nothing_is_left_to_be_filled_in():
    for document in WITH_CODE:
        assert not re.findall(r"^[A-Z_]{6,}$", document.read_text(), re.MULTILINE)
