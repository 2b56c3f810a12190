"""The documentation builds without a warning, contains every public name, and its pages read well in a browser."""

import json
import os
import subprocess
import sys
import zlib

import pytest
from docs.documents import DOCS, GUIDES, ROOT, blocks
from fakes.processes import until
from notebooks.jupyter_lab import browser_page

import scriptmode
import scriptmode.containers
import scriptmode.doctor
import scriptmode.planning
import scriptmode.testing

pytestmark = pytest.mark.timeout(1500)

MODULES = (scriptmode, scriptmode.testing, scriptmode.containers, scriptmode.doctor, scriptmode.planning)
PUBLIC = {
    *(f"{module.__name__}.{name}" for module in MODULES for name in module.__all__),
    "scriptmode.platforms.local.LocalPlatform",
    "scriptmode_runtime.tensorflow.PipeModeDataset",
} - {"scriptmode.planning.Plan"}
#: What is wrong with the page that a browser shows: what is wider than the text (whose headings are 8 px wider) without a
#: scroll bar, markup that was not rendered, and pictures of the documentation that do not load.
FAULTS = r"""
(async () => {
  const article = document.querySelector("article");
  const right = article.getBoundingClientRect().right + 9;
  const scrolls = part => part.contains(article) ? false : getComputedStyle(part).overflowX === "auto" || scrolls(part.parentElement);
  const wide = [...article.querySelectorAll("*")].filter(part => part.getBoundingClientRect().right > right && !scrolls(part));
  const pictures = [...document.images].filter(picture => picture.src.startsWith("file:"));
  pictures.forEach(picture => picture.loading = "eager");
  const loads = await Promise.all(pictures.map(picture => picture.decode().then(() => true, () => false)));
  const text = article.cloneNode(true);
  text.querySelectorAll("pre, code, style, script, dt").forEach(part => part.remove());
  return [
    ...wide.map(part => `wide: ${part.outerHTML.slice(0, 200)}`),
    ...pictures.filter((_, place) => !loads[place]).map(picture => `not loaded: ${picture.src}`),
    ...(text.textContent.match(/^.*(\|-|\*\*|:::|``|\]\(|<!--|\{\w+\}`).*$/gm) || []).map(line => `markup: ${line}`),
  ];
})()
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The HTML, built once, with every warning as an error."""
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-d", folder / "trees", DOCS, folder / "html"],
        check=False, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder / "html"


@pytest.mark.long
def test_every_public_name_is_in_the_reference(built):
    content = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = [line.split(" ") for line in zlib.decompress(content).decode().splitlines()]
    assert PUBLIC - {line[0] for line in lines if line[1].startswith("py:")} == set()


@pytest.mark.long
def test_the_first_page_links_every_guide_and_every_notebook(built):
    front = (built / "index.html").read_text()
    pages = [*(f"guides/{guide.stem}" for guide in GUIDES)]
    pages += [f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert [page for page in pages if front.count(f'href="{page}.html"') < 2] == []  # in the menu and in a table
    assert "{doc}" not in front


@pytest.mark.long
def test_every_page_reads_well_in_a_browser(built, tmp_path):
    pages = [path for path in sorted(built.rglob("*.html")) if "_static" not in path.parts]
    faults = {}
    with browser_page(tmp_path, os.environ) as browser:
        for path in pages:
            browser.open(path.as_uri())
            opened = f"location.href === {json.dumps(path.as_uri())} && document.readyState === 'complete'"
            until(lambda shown=opened: browser.value(shown))
            faults[str(path.relative_to(built))] = browser.value(FAULTS)
    assert {"index.html", "guides/recipes.html", "reference/arguments.html"} <= faults.keys()
    assert {page: found for page, found in faults.items() if found} == {}


@pytest.mark.long
def test_every_command_is_in_the_reference_with_its_help(built):
    page = (built / "reference" / "command_line.html").read_text()
    for verb in ("run", "plan", "list", "logs", "stop", "image build", "doctor"):
        assert f'id="scriptmode-{verb.replace(" ", "-")}"' in page
        assert f"Usage: scriptmode {verb}" in page


@pytest.mark.long
def test_notebooks_have_their_outputs_and_blocks_a_button_that_copies_the_commands_alone(built):
    page = (built / "notebooks" / "quickstart.html").read_text()
    assert "<polyline" in page
    assert page.count("<img alt=") >= 2  # the metrics and the predictions
    assert "copybutton.js" in page
    assert "formatCopyText(text, '$ '" in (built / "_static" / "copybutton.js").read_text()


def test_a_guide_is_short_and_begins_with_an_example():
    for guide in GUIDES:
        assert len(guide.read_text().splitlines()) <= 280, guide.name
        first = next(iter(blocks(guide)))
        assert first.line <= 40, f"{guide.name}: the first example is in line {first.line}"
