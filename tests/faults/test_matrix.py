"""Every fault in every process under every strategy, on real processes on hosts of their own.

A cell of the matrix is a fault, the process that it happens to, and a strategy (with its launcher). Each run has every
pair of those that the matrix has: every fault in every process, every fault under every strategy, every process under
every strategy. A bug that needs no more than two of the three to show up is found by each run; all cells, with every
combination of three, are run by ``make test-thorough`` (``pytest --tier thorough``). The choice is made by `covering` from the
table alone, so it is the same in each run, and a new row, column or cell of the table is in it at once.
"""

import pytest
from fakes.promptness import soon
from faults.layouts import BETWEEN_GRAPH, COORDINATOR
from faults.matrix import CELLS

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.prompt]


def covering(cells, parts):
    """Return cells that together have every part which any cell has: each time the first that adds most."""
    of_cells = [parts(cell) for cell in cells]
    missing, chosen = set().union(*of_cells), set()
    while missing:
        best = max(range(len(cells)), key=lambda number: len(of_cells[number] & missing))
        chosen.add(best)
        missing -= of_cells[best]
    return [cells[number] for number in sorted(chosen)]


def pairs(cell):
    """Return the pairs of a cell: a row is a fault in a process."""
    layout = cell.layout.name
    return {("row", cell.row), ("fault", cell.fault.name, layout), ("process", cell.name, layout)}


def parameters(cells):
    """Return the cells as parameters of a test; those that add no pair are thorough."""
    chosen = covering(cells, pairs)
    return [parameter(cell, () if cell in chosen else (pytest.mark.thorough,)) for cell in cells]


def parameter(cell, marks):
    """Return a cell with what it needs: mpirun, or TensorFlow for the servers that the runtime starts."""
    marks = [*marks, pytest.mark.mpi] if cell.layout.name.startswith("mpi") else [*marks]
    if cell.layout in (BETWEEN_GRAPH, COORDINATOR):
        marks.append(pytest.mark.tf)
    return pytest.param(cell, id=cell.title, marks=marks)


def test_each_run_has_every_row_every_column_and_every_pair():
    chosen = covering(CELLS, pairs)
    assert len(chosen) < len(CELLS)
    assert set().union(*map(pairs, chosen)) == set().union(*map(pairs, CELLS))


@pytest.mark.parametrize("cell", parameters(CELLS))
def test_a_fault_ends_the_job_as_it_should(cell, outcomes):
    _, seconds = outcomes.of(cell)
    soon(seconds, cell.bound)
