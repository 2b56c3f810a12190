"""Every fault in every process under every strategy, on real processes on hosts of their own."""

import pytest
from faults.matrix import CELLS, TENSORFLOW

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cell", CELLS, ids=[cell.title for cell in CELLS])
def test_a_fault_ends_the_job_as_it_should(cell, outcomes, record_property):
    check(cell, outcomes, record_property)


@pytest.mark.tf
@pytest.mark.parametrize("cell", TENSORFLOW, ids=[cell.title for cell in TENSORFLOW])
def test_a_fault_ends_a_training_with_tensorflow_as_it_should(cell, outcomes, record_property):
    check(cell, outcomes, record_property)


def check(cell, outcomes, record_property):
    record_property("row", cell.row)
    record_property("column", cell.layout.name)
    code, seconds = outcomes.of(cell)
    record_property("code", code)
    record_property("seconds", seconds)
