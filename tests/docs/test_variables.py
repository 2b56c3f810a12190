"""The page of the script's variables has exactly those that the launcher sets."""

import json
import re
import subprocess
import sys

import pytest
from docs.documents import DOCS

PAGE = (DOCS / "reference" / "variables.md").read_text()
NAMED = set(re.findall(r"^\| `(\w+(?:<NAME>)?)`", PAGE, re.MULTILINE))
#: Set where the platform says it, or by a strategy.
CONDITIONAL = {"SM_TOPOLOGY", "TF_CONFIG"}
PROGRAM = """
import json, os
names = [name for name in os.environ if name.startswith(("SM_", "SAGEMAKER_JOB", "SAGEMAKER_REGION")) or name == "CURRENT_HOST"]
print("names:", json.dumps(names))
"""


@pytest.mark.slow
def test_the_page_names_the_variables_that_a_script_has(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / "a").write_text("1")
    command = (sys.executable, "-m", "scriptmode", "run", "train.py", "--input", "train=points", "-p", "epochs=3")
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120).stdout
    names = json.loads(re.search(r"names: (\[.*\])", said)[1])
    masked = {re.sub(r"^SM_(CHANNEL|HP)_\w+", r"SM_\1_<NAME>", name) for name in names}
    assert masked == NAMED - CONDITIONAL
