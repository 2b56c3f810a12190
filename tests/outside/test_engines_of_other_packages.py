"""An engine of another package: that of the guide, found by its entry point."""

import os
import subprocess
import sys

import pytest
from docs.documents import DOCS, blocks

PROGRAM = """
import os
from pathlib import Path
from scriptmode import Estimator

Path("train.py").write_text("import os; print('niceness', os.nice(0))")
common = {"entry_point": "train.py", "role": "r", "instance_count": 2}
estimator = Estimator(instance_type="niced", **common)
print(str(estimator.plan()).splitlines()[2])
estimator.fit()
for other in ("nicer", "nicedd", "broken", "other"):
    try:
        Estimator(instance_type=other, **common).request()
    except ValueError as error:
        print(error)
"""


@pytest.fixture
def installed(tmp_path):
    """Install the guide's package as pip does: its modules, and what they are."""
    folder = tmp_path / "site"
    for block in blocks(DOCS / "guides" / "engines.md"):
        if block.file == "niced.py":
            folder.mkdir()
            (folder / block.file).write_text(block.text)
        elif block.file == "pyproject.toml":
            name, _, value = block.text.partition('"scriptmode.engines"]\n')[2].strip().partition(" = ")
            information = folder / "niced-1.0.dist-info"
            information.mkdir()
            value = f"{value.strip(chr(34))}\nbroken = absent:X\nother = niced:NicedEngine"
            (information / "METADATA").write_text("Metadata-Version: 2.1\nName: niced\nVersion: 1.0\n")
            (information / "entry_points.txt").write_text(f"[scriptmode.engines]\n{name} = {value}\n")
    return folder


def test_the_engine_of_the_guide_runs_a_job(installed, tmp_path):
    variables = {**os.environ, "PYTHONPATH": str(installed), "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=variables, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "processes of low priority" in done.stdout
    for host in ("algo-1", "algo-2"):
        assert f"{host} | niceness {os.nice(0) + 10}\n" in done.stdout
    assert "Completed" in done.stdout
    assert "'nicer' is neither 'local_process'" in done.stdout
    assert "did you mean 'niced'?" in done.stdout
    assert "'broken', whose engine absent:X fails: ModuleNotFoundError" in done.stdout
    assert "'other', and niced:NicedEngine is not a HostKind" in done.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "scriptmode", "list"],
        env=variables, check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert "Completed" in listed.stdout
