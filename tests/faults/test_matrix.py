"""Every fault in every process under every strategy, on real processes on hosts of their own."""

import pytest
from faults.layouts import BETWEEN_GRAPH, COORDINATOR
from faults.matrix import CELLS, TENSORFLOW

pytestmark = pytest.mark.slow


def parameter(cell):
    """A cell with what it needs: mpirun, or TensorFlow for the servers that the runtime starts."""
    marks = [pytest.mark.mpi] if cell.layout.name.startswith("mpi") else []
    if cell.program or cell.layout in (BETWEEN_GRAPH, COORDINATOR):
        marks.append(pytest.mark.tf)
    return pytest.param(cell, id=cell.title, marks=marks)


@pytest.mark.parametrize("cell", [parameter(cell) for cell in CELLS])
def test_a_fault_ends_the_job_as_it_should(cell, outcomes, record_property):
    check(cell, outcomes, record_property)


@pytest.mark.parametrize("cell", [parameter(cell) for cell in TENSORFLOW])
def test_a_fault_ends_a_training_with_tensorflow_as_it_should(cell, outcomes, record_property):
    check(cell, outcomes, record_property)


def check(cell, outcomes, record_property):
    record_property("row", cell.row)
    record_property("column", cell.layout.name)
    code, seconds = outcomes.of(cell)
    record_property("code", code)
    record_property("seconds", seconds)
