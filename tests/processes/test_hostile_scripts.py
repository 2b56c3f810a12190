"""Scripts that put links and endless folders where the platform reads, writes and removes."""

import pytest
from fakes.local_jobs import channel
from fakes.processes import until

from scriptmode_runtime.files import beneath
from scriptmode_runtime.processes import process_tree

pytestmark = pytest.mark.slow

REPLACES_ITS_INPUT = """
    import os, sys
    base = os.environ["SAGEMAKER_BASE_DIR"]
    os.rename(f"{base}/input", f"{base}/aside")
    os.symlink(os.environ["VICTIM"], f"{base}/input")
    print("replaced", flush=True)
"""
READS_THREE_EPOCHS = """
    for epoch in range(3):
        path = f"{base}/aside/data/train_{epoch}"
        while not os.path.exists(path):
            pass
        with open(path) as fifo:
            assert fifo.read() == "data"
"""
FOLDERS_IN_FOLDERS = """
    import os, sys
    for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_CHANNEL_TRAIN"):
        os.chdir(os.environ[name])
        with open("file", "w") as file:
            file.write("kept")
        for _ in range(3000):
            os.mkdir("below")
            os.chdir("below")
"""


@pytest.fixture
def victim(tmp_path):
    victim = tmp_path / "victim"
    (victim / "data" / "precious").mkdir(parents=True)
    (victim / "data" / "train").mkdir(parents=True)
    return victim


def run(jobs, script, *channels, **environment):
    asked = jobs.request(script, channels=channels)
    asked["Environment"] = environment
    jobs.platform.create(asked)
    name = asked["TrainingJobName"]
    description = jobs.wait(name)
    until(lambda: not process_tree.is_running(jobs.agent(name)), 60.0)
    return jobs.job_folder(name), description


def given(jobs, **fields):
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "file").write_text("data")
    return channel("train", f"file://{jobs.folder}/in", **fields)


@pytest.mark.parametrize("ending", ["sys.exit(3)", ""], ids=["and fails", "and completes"])
@pytest.mark.parametrize("mode", ["File", "Pipe"])
def test_a_script_that_links_its_input_elsewhere_has_nothing_removed_there(jobs, victim, ending, mode):
    folder, description = run(
        jobs, REPLACES_ITS_INPUT + f"    {ending}\n", given(jobs, InputMode=mode), VICTIM=str(victim)
    )
    assert description["TrainingJobStatus"] == ("Failed" if ending else "Completed")
    assert sorted(path.name for path in victim.rglob("*")) == ["data", "precious", "train"]
    if ending:
        assert "cannot be removed: [Errno 20] Not a directory: " in folder.agent_log.read_text()
    else:
        assert not folder.hosts.exists()


def test_no_fifo_is_made_and_nothing_is_written_where_a_script_links_its_input_to(jobs, victim):
    _, description = run(
        jobs, REPLACES_ITS_INPUT + READS_THREE_EPOCHS, given(jobs, InputMode="Pipe"), VICTIM=str(victim)
    )
    assert description["TrainingJobStatus"] == "Completed"
    assert sorted(path.name for path in victim.rglob("*")) == ["data", "precious", "train"]


@pytest.mark.parametrize("ending", ["", "sys.exit(3)"], ids=["completed", "failed"])
def test_thousands_of_folders_in_each_other_change_no_end_and_are_removed(jobs_in_memory, ending):
    jobs = jobs_in_memory
    folder, description = run(jobs, FOLDERS_IN_FOLDERS + f"    {ending}\n", given(jobs))
    assert description["TrainingJobStatus"] == ("Failed" if ending else "Completed")
    assert "Traceback" not in folder.agent_log.read_text()
    if ending:
        assert not (folder.host("algo-1") / "input" / "data").exists()
        # shutil.rmtree, with which pytest removes temporary folders, is recursive.
        beneath.remove_tree(folder.hosts)
        return
    assert not folder.hosts.exists()
    model = jobs.model(description)
    assert model["file"] == b"kept"
    assert max(name.count("/") for name in model) == 200
    (said,) = [line for line in jobs.lines(description["TrainingJobName"]) if "model: " in line]
    assert "is left out: its files more than 200 directories deep" in said
