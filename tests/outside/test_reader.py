"""The reader of documents runs what they show, and reports what differs."""

import os
import sys
from pathlib import Path

import pytest
from docs.documents import blocks
from outside.comparison import agrees
from outside.reader import Reader


@pytest.fixture
def read(tmp_path):
    """Run the blocks of a text; return the message of each failure, or ``None``."""
    variables = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    reader = Reader(tmp_path, tmp_path / "state", variables)

    def read(text):
        document = tmp_path / "page.md"
        document.write_text(text)
        failures = [reader.failure(block) for block in blocks(document)]
        return [failure and str(failure) for failure in failures]

    yield read
    reader.close()


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
        ("2026-11-22 20:42:50  script started, process 1", "2026-11-23 01:02:03 script started, process 23289\n", True),
        ("model: .../model.tar.gz", "model: file:///data/x/model.tar.gz\n", True),
        ("model: .../model.tar.gz", "model: none\n", False),
        ("2 hosts", "3 hosts\n", False),
        ("epoch 1: loss=0.5", "epoch 1: loss=0.5001\n", False),
    ],
)
def test_output_agrees_apart_from_what_differs_from_run_to_run(expected, output, agree):
    assert agrees(expected, output) is agree


@pytest.mark.parametrize(
    ("output", "agree"),
    [("accuracy 0.84, loss -1.05", True), ("accuracy 0.7, loss -1.0", False), ("loss 0.8, accuracy -1.0", False)],
)
def test_a_tolerance_is_for_each_number(output, agree):
    assert agrees("accuracy 0.8, loss -1.0", output, tolerance=0.1) is agree


def test_a_wrong_document_is_reported(read):
    first, second, third = read(
        "```console\n$ cd /\n$ pwd\n/tmp\n```\n\n```console\n$ false\n```\n\n```python\n1 / 0\n```\n"
    )
    assert "expected:\n/tmp\nfound:\n/\n" in first
    assert "exit code 1" in second
    assert "ZeroDivisionError" in third


def test_what_a_block_made_is_there_for_the_next_ones_also_after_a_failure(read):
    assert read(
        "```console\n$ number=7\n```\n```console\n$ false\n```\n```console\n$ echo $number\n7\n```\n"
        "```python\nnumber = 8\n1 / 0\n```\n```python\nassert number == 8\n```\n"
    )[2::2] == [None, None]


def test_a_comment_with_an_arrow_is_what_its_statement_prints(read):
    text = "```python\nfor number in (1, 2):\n    print(number)  # -> 1\n'a' + 'b'  # -> 'ab'\n3 + 4  # -> 8\n```\n"
    assert read(text) == ["line 5: expected:\n8\nfound:\n7\n"]
