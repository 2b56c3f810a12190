"""Containers that leave links to files of this machine where the platform reads, writes and removes."""

import shlex

import pytest
from fakes import link_chains
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import channel

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

SECRET = "root:$6$of this machine"
UP = "../" * 40


@pytest.fixture
def jobs(base_image, tmp_path, closed_after):
    started = closed_after(ContainerJobs(tmp_path / "user", base_image))
    started.folder.mkdir()
    return started


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
