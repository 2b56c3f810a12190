"""The documentation builds without a warning, and contains every public name."""

import inspect
import re
import subprocess
import sys
import zlib

import pytest
from docs.documents import DOCS, GUIDES, blocks

import scriptmode
import scriptmode.containers
import scriptmode.doctor
import scriptmode.planning
import scriptmode.testing

pytestmark = pytest.mark.timeout(450)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The HTML, built once, with every warning as an error."""
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-d", folder / "trees", DOCS, folder / "html"],
        check=False, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def inventory(built):
    """The anchors of the pages: name to page."""
    content = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = [line.split(" ") for line in zlib.decompress(content).decode().splitlines()]
    return {line[0]: line[3] for line in lines if line[1].startswith("py:")}


PUBLIC = [
    *(f"scriptmode.{name}" for name in scriptmode.__all__),
    *(f"scriptmode.testing.{name}" for name in scriptmode.testing.__all__),
    *(f"scriptmode.containers.{name}" for name in scriptmode.containers.__all__),
    *(f"scriptmode.doctor.{name}" for name in scriptmode.doctor.__all__),
    *(f"scriptmode.planning.{name}" for name in scriptmode.planning.__all__ if name != "Plan"),
    "scriptmode.platforms.base.Platform",
    "scriptmode.platforms.local.LocalPlatform",
    "scriptmode_runtime.tensorflow.PipeModeDataset",
]


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(inventory):
    assert [name for name in PUBLIC if name not in inventory] == []


@pytest.mark.slow
def test_the_first_page_links_every_guide(built):
    front = (built / "index.html").read_text()
    assert [guide.stem for guide in GUIDES if f'href="guides/{guide.stem}.html"' not in front] == []


@pytest.mark.slow
def test_every_command_is_in_the_reference_with_its_help(built):
    page = (built / "reference" / "command_line.html").read_text()
    for verb in ("run", "plan", "list", "logs", "stop", "jobs submit training", "image build", "doctor", "completion"):
        assert f'id="scriptmode-{verb.replace(" ", "-")}"' in page
        assert f"Usage: scriptmode {verb}" in page


@pytest.mark.slow
def test_notebooks_are_pages_with_their_outputs_and_guides_link_them(built):
    page = (built / "notebooks" / "quickstart.html").read_text()
    assert "<polyline" in page
    assert page.count("<img alt=") >= 3
    assert 'href="../notebooks/quickstart.html"' in (built / "guides" / "getting_started.html").read_text()


@pytest.mark.slow
def test_every_notebook_is_a_page_that_the_first_page_links(built):
    names = {path.stem for path in (DOCS.parents[1] / "notebooks").glob("*.ipynb")}
    front = (built / "index.html").read_text()
    assert [name for name in sorted(names) if f'href="notebooks/{name}.html"' not in front] == []


@pytest.mark.slow
def test_blocks_have_a_button_that_copies_the_commands_alone(built):
    assert "copybutton.js" in (built / "index.html").read_text()
    assert "formatCopyText(text, '$ '" in (built / "_static" / "copybutton.js").read_text()


@pytest.mark.slow
def test_the_changelog_is_a_page(built):
    assert "Unreleased" in (built / "changelog.html").read_text()


def test_a_guide_is_short_and_begins_with_an_example():
    for guide in GUIDES:
        text = guide.read_text()
        assert len(text.splitlines()) <= 280, guide.name
        first = next(iter(blocks(guide)))
        assert first.line <= 40, f"{guide.name}: the first example is in line {first.line}"


def test_the_errors_in_the_guide_have_the_attributes_it_lists():
    page = (DOCS / "guides" / "failures.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `TrainingJob")]
    assert len(rows) == 2
    description = {"TrainingJobName": "a", "TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}
    for classes, said in rows:
        for name in re.findall(r"`(\w+)`", classes):
            error = getattr(scriptmode, name)("text", description)
            assert [word for word in re.findall(r"`(\w+)`", said) if not hasattr(error, word)] == []


def test_every_argument_of_an_estimator_is_once_in_the_list():
    page = (DOCS / "reference" / "arguments.md").read_text()
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    taken = [name for name in inspect.signature(scriptmode.Estimator).parameters if name != "older_names"]
    assert sorted(named) == sorted(taken)
