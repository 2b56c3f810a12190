"""What a document tells a reader to type in works, in the order in which it stands there."""

import pytest
from docs.documents import FILES, READ, RUN, WITH_CODE, blocks, label
from docs.reader import MismatchError, agrees, commands, end

from scriptmode import Estimator, TrainingJobStopped
from scriptmode.platforms.local import LocalPlatform

#: Blocks in all documents that cannot be run here: each says why in the document itself.
MOST_NOT_RUN = 8


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_a_reader_who_types_in_a_document_sees_what_it_says(document, reader):
    for block in blocks(document):
        # Screens are typed into a terminal: test_screens.py.
        if block.not_run is None and block.screen is None:
            reader.read(block)


def test_few_blocks_are_not_run_and_each_says_why():
    left_out = [(label(document), block) for document in WITH_CODE for block in blocks(document) if block.not_run]
    for name, block in left_out:
        print(f"{name}:{block.line}: not run: {block.not_run}")
    assert len(left_out) <= MOST_NOT_RUN


@pytest.mark.parametrize("document", WITH_CODE, ids=label)
def test_every_block_of_a_document_says_what_it_is(document):
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
def test_what_a_document_expects_is_compared_without_what_differs_from_run_to_run(expected, output, agree):
    assert agrees(expected, output) is agree


@pytest.mark.slow
def test_a_reader_sees_when_a_document_is_wrong(reader, tmp_path):
    document = tmp_path / "wrong.md"
    document.write_text("```console\n$ cd /\n$ pwd\n/tmp\n```\n\n```console\n$ false\n```\n\n```python\n1 / 0\n```\n")
    first, second, third = blocks(document)
    with pytest.raises(MismatchError, match=r"expected:\n/tmp\nfound:\n/\n"):
        reader.read(first)
    with pytest.raises(MismatchError, match="exit code 1"):
        reader.read(second)
    with pytest.raises(MismatchError, match="ZeroDivisionError"):
        reader.read(third)


def test_a_job_that_a_document_left_is_ended_whether_or_not_it_completes_first(tmp_path):
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
