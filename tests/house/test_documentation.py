"""What the README shows is what happens."""

import ast
import re
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", PYTHON, ids=[block.strip().splitlines()[0] for block in PYTHON])
def test_every_python_block_is_python(block):
    ast.parse(block)


def test_the_plan_test_of_the_readme_passes(tmp_path, monkeypatch):
    block = next(block for block in PYTHON if "def test_the_second_host" in block)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    names = {}
    exec(block, names)
    names["test_the_second_host_serves_a_worker_and_a_ps"](tmp_path)


def test_every_folder_the_readme_names_is_there():
    for name in re.findall(r"^\| `([a-z_/]+)` \|", README, re.MULTILINE):
        assert (Path(__file__).parents[2] / name).is_dir(), name


def test_nothing_is_left_to_be_filled_in():
    assert not re.findall(r"^[A-Z_]{6,}$", README, re.MULTILINE)
