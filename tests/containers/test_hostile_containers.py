"""Containers that leave links to files of this machine where the platform reads, writes and removes."""

import json
import shlex

import pytest
from fakes import link_chains, plain_user
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import channel, unpacked

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

SECRET = "root:$6$of this machine"
UP = "../" * 40


@pytest.fixture
def jobs(base_image, tmp_path):
    started = ContainerJobs(tmp_path / "user", base_image)
    started.folder.mkdir()
    yield started
    started.close()


@pytest.fixture
def secret(tmp_path):
    """A file of this machine that no container sees."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "shadow").write_text(SECRET)
    return tmp_path / "etc" / "shadow"


def links_to(secret, folder):
    """Shell commands that leave links to the secret in a folder, by its name and through a chain longer than any path."""
    long = link_chains.LONG
    lines = [f"cd {folder}", f"ln -s {shlex.quote(str(secret))} absolute", f"ln -s {UP}{str(secret)[1:]} relative"]
    for step in link_chains.STEPS:
        lines += [f"mkdir {long}", f"ln -s {long} {step}", f"cd {long}"]
    chain = "/".join(link_chains.STEPS) + f"/{link_chains.LAST}"
    lines += [f"ln -s {UP}{str(secret.parent)[1:]} {link_chains.LAST}", f"cd {folder}", f"ln -s {chain}/shadow chained"]
    return lines


def run(jobs, *lines, channels=(), **more):
    """Run a job whose container is a shell with these commands, which a channel brings."""
    (jobs.folder / "commands").mkdir()
    (jobs.folder / "commands" / "run.sh").write_text("\n".join(("set -e", *lines, "")))
    commands = channel("commands", f"file://{jobs.folder}/commands", InputMode="File")
    asked = jobs.request("", channels=[commands, *channels], more=more)
    asked["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/sh", "/opt/ml/input/data/commands/run.sh"]
    jobs.platform.create(asked)
    return asked["TrainingJobName"], jobs.wait(asked["TrainingJobName"])


def test_links_to_files_of_this_machine_are_neither_in_the_model_nor_among_checkpoints(jobs, secret):
    kept = jobs.folder / "kept"
    name, description = run(
        jobs,
        "echo weights > /opt/ml/model/weights",
        "ln -s /opt/ml/model/weights /opt/ml/model/own",
        *links_to(secret, "/opt/ml/model"),
        *links_to(secret, "/opt/ml/checkpoints"),
        "echo step > /opt/ml/checkpoints/step",
        *links_to(secret, "/opt/ml/output/data"),
        CheckpointConfig={"S3Uri": f"file://{kept}"},
    )
    assert description["TrainingJobStatus"] == "Completed", description
    model = {path: content for path, content in jobs.model(description).items() if content is not None}
    assert model == {"weights": b"weights\n", "own": b"weights\n"}
    assert [path.name for path in kept.iterdir()] == ["step"]
    said = "\n".join(jobs.lines(name))
    for link in ("absolute", "relative", "chained"):
        for tree in ("model", "checkpoints", "output/data"):
            assert f"{tree}: algo-1's {link!r} is left out: it is a link out of /opt/ml" in said


@pytest.mark.parametrize("link", ["absolute", "relative", "chained"])
def test_a_failure_file_that_links_to_a_file_of_this_machine_is_not_read(jobs, secret, link):
    _, description = run(
        jobs, *links_to(secret, "/opt/ml/output"), f"mv {link} failure", "echo the last words", "exit 3"
    )
    assert description["TrainingJobStatus"] == "Failed"
    assert SECRET not in description["FailureReason"]
    assert "the last words" in description["FailureReason"]
    assert description["FailureReason"].endswith("exit code: 3")


@pytest.mark.parametrize("mode", ["File", "Pipe"])
@pytest.mark.parametrize("ending", ["exit 3", "true"])
def test_a_container_that_links_its_input_to_this_machine_has_nothing_removed_there(jobs, tmp_path, mode, ending):
    victim = tmp_path / "victim"
    (victim / "data" / "train").mkdir(parents=True)
    (victim / "data" / "precious").write_text("kept")
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "file").write_text("data")
    epochs = [f"cat /opt/ml/aside/data/train_{n}" for n in range(2)] if mode == "Pipe" else []
    _, description = run(
        jobs,
        "mv /opt/ml/input /opt/ml/aside",
        f"ln -s {shlex.quote(str(victim))} /opt/ml/input",
        *(f"until test -e /opt/ml/aside/data/train_{n}; do :; done; {line}" for n, line in enumerate(epochs)),
        ending,
        channels=[channel("train", f"file://{jobs.folder}/in", InputMode=mode)],
    )
    assert description["TrainingJobStatus"] == ("Failed" if ending == "exit 3" else "Completed")
    jobs.close()
    assert sorted(path.name for path in victim.rglob("*")) == ["data", "precious", "train"]


#: A job of a user who is not root, in whose container root writes what it keeps to itself.
CLIENT = """
import json, os, sys
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import channel

assert os.getuid() != 0
home, image = sys.argv[1:]
jobs = ContainerJobs(home, image)
os.mkdir(f"{home}/commands")
with open(f"{home}/commands/run.sh", "w") as file:
    file.write('''
        set -e
        umask 077
        mkdir -p /opt/ml/model/closed/below
        echo weights > /opt/ml/model/closed/below/weights
        ln -s /etc /opt/ml/model/closed/etc
        ln -s /etc/hostname /opt/ml/output/data/hostname
    ''')
asked = jobs.request("", channels=[channel("commands", f"file://{home}/commands")])
asked["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/sh", "/opt/ml/input/data/commands/run.sh"]
jobs.platform.create(asked)
ended = jobs.wait(asked["TrainingJobName"])
jobs.close()
print(json.dumps([ended.get("TrainingJobStatus"), ended.get("FailureReason"), ended.get("ModelArtifacts")]))
"""


def test_what_root_of_a_container_wrote_is_given_back_to_the_user(base_image):
    with plain_user.folder_of_the_user() as folder:
        said = plain_user.run(CLIENT, str(folder), base_image, home=folder)
        status, reason, artifacts = json.loads(said.splitlines()[-1])
        assert status == "Completed", reason
        model = unpacked(artifacts["S3ModelArtifacts"].removeprefix("file://"))
        assert model == {"closed": None, "closed/below": None, "closed/below/weights": b"weights\n"}
        assert [path for path in folder.rglob("*") if path.lstat().st_uid != plain_user.UID] == []
        assert not list(folder.glob("data dir/jobs/*/hosts"))
