"""Scripts that replace files of their job by links and FIFOs: the platform neither follows nor waits for them."""

import pytest
from fakes.local_jobs import channel
from fakes.processes import until

from scriptmode_runtime.contract import MULTI_WORKER_MIRRORED_ENABLED

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


@pytest.mark.parametrize(("mode", "code"), [("File", 3), ("Pipe", 0)])
def test_a_script_that_links_its_input_elsewhere_has_nothing_removed_or_written_there(jobs, mode, code):
    victim = jobs.folder / f"victim {mode}"
    (victim / "data" / "train").mkdir(parents=True)
    (victim / "data" / "precious").write_text("kept")
    (jobs.folder / mode).mkdir()
    (jobs.folder / mode / "file").write_text("data")
    environment = {"VICTIM": str(victim), "EPOCHS": "3" if mode == "Pipe" else "0", "CODE": str(code)}
    channels = [channel("train", (jobs.folder / mode).as_uri(), InputMode=mode)]
    name = jobs.start(REPLACES_ITS_INPUT, channels=channels, more={"Environment": environment})
    assert jobs.wait(name)["TrainingJobStatus"] == ("Failed" if code else "Completed"), jobs.why(name)
    until(lambda: not jobs.remains(name))
    until(lambda: code or not jobs.job_folder(name).hosts.exists())
    assert sorted(path.name for path in victim.rglob("*")) == ["data", "precious", "train"]
    assert not list((victim / "data" / "train").iterdir())


REPLACES_ITSELF = """
import os, sys
os.unlink(__file__)
os.mkfifo(__file__)
sys.exit(3)
"""


def test_a_script_that_leaves_a_fifo_in_its_place_ends_its_job(engine, jobs):
    name = jobs.start(
        REPLACES_ITSELF, hosts=min(2, engine.hosts), hyperparameters={MULTI_WORKER_MIRRORED_ENABLED: True}
    )
    assert jobs.wait(name)["FailureReason"].endswith("exit code: 3")
    until(lambda: not jobs.remains(name))
