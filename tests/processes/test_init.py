"""``scriptmode init`` writes a job that runs as it is, and overwrites nothing."""

import json

import pytest
from fakes.command_line import program


@pytest.mark.tf
def test_the_job_runs_as_it_is(here):
    done = program("init", "my first")
    assert done.stdout.splitlines()[-1] == "run it: scriptmode run --file 'my first/job.toml'"
    ran = program("run", "--file", "my first/job.toml", "--job-name", "first", "--plain", timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = json.loads(program("metrics", "first", "loss", "val_loss", "--json").stdout)
    losses = [row["value"] for row in rows if row["metric_name"] == "loss"]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert program("model", "download", "first").returncode == 0
    assert (here / "first" / "model.weights.h5").exists()


@pytest.mark.parametrize("name", ["train.py", "data/numbers.csv"])
def test_nothing_is_written_where_a_file_exists(here, name):
    (here / "data").mkdir()
    (here / name).write_text("mine")
    done = program("init")
    assert done.returncode == 2
    assert done.stderr == f"scriptmode: {name} exists already, and nothing was written; name another DIRECTORY\n"
    assert [path.name for path in here.rglob("*") if path.is_file()] == [name.rpartition("/")[2]]
    assert (here / name).read_text() == "mine"
