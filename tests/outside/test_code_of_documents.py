"""The code blocks of every document work for a user who installed scriptmode, in the order of the document."""

import tempfile
from pathlib import Path

import pytest
from docs.documents import WITH_CODE, label
from outside.documents_run import ADDITIONAL, DocumentRun
from outside.installations import BARE, INSTALLATIONS

#: The document whose blocks also run in short runs of the tests: a first job, from its script to its model.
FIRST = "sdk/docs/guides/getting_started.md"
RUNS = [DocumentRun(installation, document) for installation in INSTALLATIONS for document in WITH_CODE]


def cases():
    """Yield each block of each run, marked."""
    for run in RUNS:
        for block in run.blocks():
            marks = [] if (run.installation, label(run.document)) == (BARE, FIRST) else [pytest.mark.long]
            yield pytest.param(run, block.line, marks=marks, id=f"{run}-line {block.line}")


@pytest.fixture(scope="session")
def failures(install, outside):
    """Return the failures of a run by the blocks' lines; the run of a document happens once, in order."""
    found = {}

    def failures(run):
        if run not in found:
            environment = install(run.installation, ADDITIONAL if run.needs.intersection(ADDITIONAL) else ())
            found[run] = run.run(environment, Path(tempfile.mkdtemp(dir=outside)))
        return found[run]

    return failures


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first block of a document waits for the installation and for all of its blocks
@pytest.mark.parametrize(("run", "line"), list(cases()))
def test_a_block_works_as_the_document_shows(run, line, failures):
    failure = failures(run)[line]
    if failure is not None:
        raise failure
