"""What the documents name exists, their links lead somewhere, and each of their blocks says what it is."""

import ast
import re
import sys
from urllib.parse import unquote, urlsplit

import pytest
from docs.documents import (
    CONTRIBUTING,
    DOCS,
    FILES,
    GUIDES,
    READ,
    README,
    ROOT,
    RUN,
    WITH_CODE,
    WITH_LINKS,
    anchors,
    blocks,
    label,
    links,
)
from outside.reader import commands

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = README.read_text()
#: Maximum number of blocks in all documents that are not run; each has its reason in the document.
MOST_NOT_RUN = 15
#: What a block may need beside scriptmode: its extras, a program, an account.
NEEDS = {"tensorflow", "mpi", "tuner", "notebook", "pytest", "serve", "mlflow-skinny", "wandb", "AWS account"}


def test_every_directory_and_file_that_is_shown_exists():
    text = CONTRIBUTING.read_text()
    layout = text.partition("## Layout")[2].partition("\n## ")[0]
    folders = re.findall(r"^\| `([a-z_/]+)` \|", layout, re.MULTILINE)
    paths = re.findall(r"(?<![\w./])(?:tests|sdk|entrypoints)/[\w/.]*\w", text)
    assert {"container", "notebooks", "tests/sdk/test_distribution.py"} < {*folders, *paths}
    assert [path for path in (*folders, *paths) if not (ROOT / path).exists()] == []


def test_every_target_of_make_that_a_document_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {
        document: set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", document.read_text(), re.MULTILINE))
        for document in (README, CONTRIBUTING)
    }
    assert {"demo", "test", "docs"} <= shown[README] <= targets
    assert {"light", "lint", "check", "test", "test-all", "bench", "screens"} <= shown[CONTRIBUTING] <= targets


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_the_first_page_begins_like_the_readme_and_links_every_guide_and_every_notebook():
    page = DOCS / "index.md"
    begin = next(blocks(page))
    assert (begin.language, begin.line) == ("{include} ../../README.md", 1)
    (end,) = re.findall(r":end-before: (.+)", begin.text)
    assert "## Five kinds of hosts" in TEXT.partition(end)[0]
    assert TEXT.partition(end)[2]
    found = {(page.parent / link).resolve() for link in links(page)}
    assert {*GUIDES, *(ROOT / "notebooks").glob("*.ipynb")} - found == set()


def test_links_of_the_package_page_lead_to_the_repository(tmp_path):
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    page, text = tmp_path / "page.md", TEXT
    for each in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    page.write_text(text)
    found = list(links(page))
    assert [target for target in found if not target.startswith(("https://", "#"))] == []
    assert "https://github.com/scriptmode/scriptmode/blob/main/sdk/docs/guides/slurm.md" in found
    assert "https://raw.githubusercontent.com/scriptmode/scriptmode/main/sdk/docs/pictures/live.svg" in found


@pytest.mark.parametrize("document", WITH_LINKS, ids=label)
def test_the_target_of_every_link_exists(document):
    for target in links(document):
        parts = urlsplit(target)
        if parts.scheme:
            assert parts.scheme == "https", target
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), target
            continue
        place = (document.parent / unquote(parts.path)).resolve() if parts.path else document
        assert place.exists(), f"{target}: there is no {place}"
        if parts.fragment:
            assert parts.fragment in anchors(place), f"{target}: {place.name} has no such heading"


@pytest.mark.parametrize("document", WITH_LINKS, ids=label)
def test_each_row_of_a_table_has_the_cells_of_its_head(document):
    tables = re.findall(r"(?:^\|.+\n)+", document.read_text(), re.MULTILINE)
    cells = [[len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()] for table in tables]
    assert [table for table, counts in zip(tables, cells) if len(set(counts)) > 1] == []


def test_the_guide_has_the_number_of_public_programs_that_pass():
    expected = tomllib.loads((ROOT / "tests/foreign_suites/expected.toml").read_text())
    passes = expected["passes"]["v2-programs"]
    failures = sum(len(each["tests"]) for each in expected["v2-programs"])
    sentence = f"Of {passes + failures} public programs and notebooks, {passes} request their job so"
    assert sentence in (DOCS / "guides/coming_from_sagemaker_v2.md").read_text()


def test_few_blocks_are_not_run_and_each_has_a_reason():
    left_out = [(label(document), block) for document in WITH_CODE for block in blocks(document) if block.not_run]
    # tests/kubernetes/test_guide.py runs those.
    left_out = [(name, block) for name, block in left_out if block.not_run != "it needs a cluster"]
    assert len(left_out) <= MOST_NOT_RUN, [(name, block.line, block.not_run) for name, block in left_out]


@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_every_block_has_a_known_language_and_known_needs(document):
    for block in blocks(document):
        assert block.language in {*RUN, *FILES, *READ}, f"line {block.line}: {block.language!r}"
        assert NEEDS.issuperset(block.needs), f"line {block.line}: {block.needs}"
        if block.language == "python":
            ast.parse(block.text, filename=f"line {block.line}")
        if block.language in READ:
            assert not list(commands(block.text)), f"line {block.line}: commands belong into a console block"
        if block.language in set(FILES) - set(RUN):
            assert block.file, f"line {block.line}: say the file's name in its first line: # job.{block.language}"
