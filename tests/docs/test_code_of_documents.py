"""The code blocks of every document work, in the order of the document."""

import pytest
from docs.documents import FILES, READ, README, RUN, WITH_CODE, blocks, label
from docs.reader import MismatchError, agrees, commands, end

from scriptmode import Estimator, TrainingJobStopped
from scriptmode.platforms.local import LocalPlatform

#: Maximum number of blocks in all documents that are not run; each has its reason in the document.
MOST_NOT_RUN = 14


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_the_code_of_a_document_works(document, reader):
    if document == README:
        # Its first readers have neither an account nor a Region.
        for name in [name for name in reader.environment if name.startswith("AWS_")]:
            del reader.environment[name]
    for block in blocks(document):
        # Screens are tested in test_screens.py.
        if block.not_run is None and block.screen is None:
            reader.read(block)


def test_few_blocks_are_not_run_and_each_has_a_reason():
    left_out = [(label(document), block) for document in WITH_CODE for block in blocks(document) if block.not_run]
    for name, block in left_out:
        print(f"{name}:{block.line}: not run: {block.not_run}")
    assert len(left_out) <= MOST_NOT_RUN


@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_every_block_has_a_known_language(document):
    for block in blocks(document):
        assert block.language in {*RUN, *FILES, *READ}, f"line {block.line}: {block.language!r}"
        if block.language in READ:
            assert not list(commands(block.text)), f"line {block.line}: commands belong into a console block"
        if block.language in set(FILES) - set(RUN):
            assert block.file, f"line {block.line}: say the file's name in its first line: # job.{block.language}"


@pytest.mark.parametrize(
    ("expected", "output", "agree"),
    [
        ("", "anything\n", True),
        ("Completed", "Starting\nCompleted\nmore\n", True),
        ("Completed", "not Completed\n", False),
        ("a\nc", "a\nb\nc\n", False),
        ("a\n...\nc", "a\nb\nc\n", True),
        ("took 3.1 s", "took   12,004.5 s\n", True),
        ("job tf-2026-01-31-12-00-00-000 started", "job tf-2027-11-01-02-03-04-567 started\n", True),
        ("model: .../model.tar.gz", "model: file:///data/x/model.tar.gz\n", True),
        ("model: .../model.tar.gz", "model: none\n", False),
    ],
)
def test_expected_output_is_compared_without_numbers_and_names(expected, output, agree):
    assert agrees(expected, output) is agree


@pytest.mark.slow
def test_a_wrong_document_is_reported(reader, tmp_path):
    document = tmp_path / "wrong.md"
    document.write_text("```console\n$ cd /\n$ pwd\n/tmp\n```\n\n```console\n$ false\n```\n\n```python\n1 / 0\n```\n")
    first, second, third = blocks(document)
    with pytest.raises(MismatchError, match=r"expected:\n/tmp\nfound:\n/\n"):
        reader.read(first)
    with pytest.raises(MismatchError, match="exit code 1"):
        reader.read(second)
    with pytest.raises(MismatchError, match="ZeroDivisionError"):
        reader.read(third)


def test_a_job_that_a_document_left_is_stopped_or_completes(tmp_path):
    (tmp_path / "quick.py").touch()
    (tmp_path / "endless.py").write_text("import threading\n\nthreading.Event().wait()\n")
    platform = LocalPlatform(data_dir=tmp_path / "data")
    quick, endless = (
        Estimator(entry_point=str(tmp_path / name), instance_type="local_process", platform=platform).fit(wait=False)
        for name in ("quick.py", "endless.py")
    )
    quick.wait(30)
    for job in (quick, endless):
        end(job)
    with pytest.raises(TrainingJobStopped):
        endless.wait(0)
    assert quick.status == "Completed"
