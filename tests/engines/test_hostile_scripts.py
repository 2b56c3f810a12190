"""Scripts that leave a link where the platform writes and removes: nothing is written or removed behind it."""

import pytest
from fakes.local_jobs import channel
from fakes.processes import until

REPLACES_ITS_INPUT = """
import os, sys
os.rename("/opt/ml/input", "/opt/ml/aside")
os.symlink(os.environ["VICTIM"], "/opt/ml/input")
print("replaced", flush=True)
for epoch in range(int(os.environ["EPOCHS"])):
    path = f"/opt/ml/aside/data/train_{epoch}"
    while not os.path.exists(path):
        pass
    with open(path) as fifo:
        assert fifo.read() == "data"
sys.exit(int(os.environ["CODE"]))
"""


@pytest.mark.parametrize("mode", ["File", "Pipe"])
def test_a_script_that_links_its_input_elsewhere_has_nothing_removed_or_written_there(jobs, mode):
    victim = jobs.folder / f"victim {mode}"
    (victim / "data" / "train").mkdir(parents=True)
    (victim / "data" / "precious").write_text("kept")
    (jobs.folder / mode).mkdir()
    (jobs.folder / mode / "file").write_text("data")
    epochs = 3 if mode == "Pipe" else 0
    names = {}
    for code in (0, 3):
        environment = {"VICTIM": str(victim), "EPOCHS": str(epochs), "CODE": str(code)}
        channels = [channel("train", (jobs.folder / mode).as_uri(), InputMode=mode)]
        names[code] = jobs.start(REPLACES_ITS_INPUT, channels=channels, more={"Environment": environment})
    for code, name in names.items():
        assert jobs.wait(name)["TrainingJobStatus"] == ("Failed" if code else "Completed"), jobs.why(name)
        until(lambda name=name: not jobs.remains(name))
        until(lambda name=name, code=code: code or not jobs.job_folder(name).hosts.exists())
    assert sorted(path.name for path in victim.rglob("*")) == ["data", "precious", "train"]
    assert not list((victim / "data" / "train").iterdir())
