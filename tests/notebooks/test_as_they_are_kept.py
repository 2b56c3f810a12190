"""Every notebook in the repository is small, without outputs, and executed by a test."""

import ast
from pathlib import Path

import nbformat
import pytest
from notebooks.execution import INJECTED, NOTEBOOKS, PARAMETERS, assigned, inject
from notebooks.stripping import stripped

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))

every_notebook = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def parameters_cells(notebook):
    return [cell for cell in notebook.cells if PARAMETERS in cell.metadata.get("tags", ())]


@every_notebook
def test_a_notebook_is_kept_without_outputs_and_spelled_the_same(path):
    text = path.read_text()
    assert text == stripped(text), "python tests/notebooks/stripping.py rewrites it"


@every_notebook
def test_a_notebook_is_thin(path):
    text = path.read_text()
    assert len(text) < 20_000
    assert len(text.splitlines()) <= 400
    for cell in nbformat.reads(text, as_version=4).cells:
        is_code = cell.cell_type == "code"
        assert len(cell.source.splitlines()) <= 30
        assert not is_code or not [line for line in cell.source.splitlines() if line.startswith(("!", "%", "def "))]


@every_notebook
def test_a_notebook_says_its_sizes_in_one_cell(path):
    (cell,) = parameters_cells(nbformat.read(path, as_version=4))
    assert assigned(cell.source)


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


NOISY = """{
 "nbformat": 4, "nbformat_minor": 4, "metadata": {"widgets": {}, "language_info": {"name": "python", "version": "3.11.2"}},
 "cells": [{
  "cell_type": "code", "execution_count": 7, "source": ["EPOCHS = 3  \\n", "DATA = 'here'\\n", "\\n"],
  "metadata": {"tags": ["parameters"], "scrolled": true, "execution": {"iopub.status.busy": "2026"}},
  "outputs": [{"output_type": "stream", "name": "stdout", "text": ["said"]}]
 }]
}"""


def test_stripping_leaves_the_cells_and_their_tags_and_is_done_once():
    once = stripped(NOISY)
    notebook = nbformat.reads(once, as_version=4)
    (cell,) = notebook.cells
    assert (cell.source, cell.metadata) == ("EPOCHS = 3\nDATA = 'here'", {"tags": ["parameters"]})
    assert (cell.outputs, cell.execution_count) == ([], None)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert stripped(once) == once


def test_a_parameter_overrules_the_cell_that_assigns_it_and_no_cell_is_left_out():
    notebook = nbformat.reads(stripped(NOISY), as_version=4)
    inject(notebook, {"EPOCHS": 1})
    assert [cell.source for cell in notebook.cells] == ["EPOCHS = 3\nDATA = 'here'", "EPOCHS = 1"]
    assert notebook.cells[1].metadata.tags == [INJECTED]


def test_a_parameter_that_the_notebook_does_not_have_is_named():
    with pytest.raises(AssertionError, match="does not assign EPOCH"):
        inject(nbformat.reads(stripped(NOISY), as_version=4), {"EPOCH": 1})
