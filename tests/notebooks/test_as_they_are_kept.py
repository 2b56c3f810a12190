"""Every notebook in the repository is small, has the outputs of its current cells, and is executed by a test."""

import ast
import re
import socket
from pathlib import Path

import nbformat
import pytest
from notebooks.execution import NOTEBOOKS, PARAMETERS, assigned
from notebooks.recording import RECORDED, WITH_CONTAINERS, code_digest, kept, stripped

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))

#: Paths of a machine, of a user and of tests; and what a picture is as text.
OF_A_MACHINE = re.compile(r"/tmp/(?!work\b|scriptmode/)|(?<![\w.])/(work|root|srv|mnt)\b|/home/(?!me\b)|notebook-\w{8}")
PNG = re.compile(r"iVBOR[\w+/=\s]+")

every_notebook = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


@every_notebook
def test_a_notebook_has_the_outputs_of_its_current_cells(path):
    notebook = nbformat.read(path, as_version=4)
    command = ".ci/docker run make notebooks" if path.stem in WITH_CONTAINERS else "make notebooks"
    renew = f"{command} NAMES={path.stem} runs it again"
    assert notebook.metadata.get(RECORDED) == code_digest(notebook), renew
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), renew
    assert len([cell for cell in cells if cell.outputs]) >= len(cells) / 2, renew
    has_picture = any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert has_picture or path.stem in WITH_CONTAINERS, renew


@every_notebook
def test_outputs_are_small_and_without_errors_and_paths_of_a_machine(path):
    assert path.stat().st_size < 500_000
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            texts = [output.get("text", ""), *(value for value in output.get("data", {}).values())]
            shown = "\n".join(text for text in texts if not PNG.fullmatch(text))
            assert not OF_A_MACHINE.search(shown), OF_A_MACHINE.search(shown)
            assert socket.gethostname() not in shown


@every_notebook
def test_a_notebook_is_thin_and_says_its_sizes_in_one_cell(path):
    text = path.read_text()
    assert text == kept(text), "make notebooks rewrites it"
    text = stripped(text)
    assert len(text) < 20_000
    assert len(text.splitlines()) <= 400
    cells = nbformat.reads(text, as_version=4).cells
    for cell in cells:
        is_code = cell.cell_type == "code"
        assert len(cell.source.splitlines()) <= 30
        assert not is_code or not [line for line in cell.source.splitlines() if line.startswith(("!", "%", "def "))]
    (sizes,) = [cell for cell in cells if PARAMETERS in cell.metadata.get("tags", ())]
    assert assigned(sizes.source)


def names_executed(path):
    """The notebooks that a test module executes: the first arguments of executed(...)."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if getattr(call.func, "id", "") == "executed" and isinstance(call.args[0], ast.Constant)
    }


def test_every_notebook_is_executed_by_a_test():
    tests = Path(__file__).parent.glob("test_*.py")
    assert set().union(*map(names_executed, tests)) == {path.stem for path in PATHS}
