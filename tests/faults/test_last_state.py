"""How a job ended is not changed by what happens to it, or to its folder, afterwards."""

import os
import signal

import pytest
from fakes.local_jobs import channel
from fakes.processes import processes_naming, until
from faults.disks import small_disk

from scriptmode_runtime.files import beneath

#: Deeper than Python recurses, and its path longer than the kernel takes at once.
DEEP = """
    import os
    print("up", flush=True)
    os.chdir(os.environ["SM_OUTPUT_INTERMEDIATE_DIR"])
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
"""
WAITS = """
    import os, pathlib, time
    print("up", flush=True)
    while not pathlib.Path(os.environ["SM_MODEL_DIR"], "go").exists():
        time.sleep(0.01)
"""


def until_the_agent_is_gone(jobs, name):
    until(lambda: not processes_naming(str(jobs.job_folder(name).path)))


@pytest.mark.slow
@pytest.mark.parametrize(("end", "status"), [("", "Completed"), ("    raise SystemExit(3)", "Failed")])
def test_a_tree_too_deep_to_be_removed_recursively_changes_nothing(jobs_in_memory, end, status):
    jobs = jobs_in_memory
    name = jobs.start(DEEP + end)
    try:
        description = jobs.wait(name)
        assert description["TrainingJobStatus"] == status, description["FailureReason"]
        until_the_agent_is_gone(jobs, name)
        assert jobs.platform.describe(name) == description
        assert jobs.job_folder(name).hosts.exists() == bool(end)
    finally:
        # pytest cannot remove so deep a tree.
        with beneath.Directory(jobs.job_folder(name).path) as folder:
            folder.remove_tree("hosts")


@pytest.mark.slow
def test_what_cannot_be_removed_is_a_warning_in_the_agents_log(jobs):
    name = jobs.start(WAITS)
    jobs.until_line(name, "up")
    host = jobs.job_folder(name).host("algo-1")
    with small_disk(host / "mounted", "tmpfs"):
        (host / "model" / "go").touch()
        description = jobs.wait(name)
        until_the_agent_is_gone(jobs, name)
        assert description["TrainingJobStatus"] == "Completed"
        assert jobs.platform.describe(name) == description
        assert "warning: " in (log := jobs.job_folder(name).agent_log.read_text())
        assert f"{jobs.job_folder(name).hosts} is not needed any more and cannot be removed: " in log


def test_a_job_without_an_agent_leaves_no_input_and_no_fifo(jobs):
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "data").write_text("secret")
    uri = f"file://{jobs.folder}/in"
    channels = [channel("train", uri), channel("stream", uri, InputMode="Pipe")]
    name = jobs.start(WAITS, channels=channels)
    jobs.until_line(name, "up")
    host = jobs.job_folder(name).host("algo-1")
    assert {path.name for path in (host / "input" / "data").iterdir()} >= {"train", "stream_0"}
    os.kill(jobs.agent(name).pid, signal.SIGKILL)
    until_the_agent_is_gone(jobs, name)
    assert jobs.platform.describe(name)["TrainingJobStatus"] == "Failed"
    assert not (host / "input" / "data").exists()
    assert not jobs.job_folder(name).channels.exists()
    assert (host / "model").exists()
