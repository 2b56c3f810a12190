"""What ``run`` and ``plan`` parse from options: an estimator's arguments, or an error with the next step."""

import json

import pytest
from click.testing import CliRunner

from scriptmode import InstanceGroup, SpecError, TrainingInput
from scriptmode_cli import scriptmode
from scriptmode_cli._commands.run import run
from scriptmode_cli._options.run_options import RunOptions


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part").write_text("1")
    return tmp_path


def read(*words):
    """Parse the words of ``run`` without starting a job."""
    found = []

    def callback(*, wait, is_plain, as_json, **given):
        found.append(RunOptions.parse(given))

    type(run)("run", params=run.params, callback=callback).main(list(words), standalone_mode=False)
    return found[0]


def test_options_are_the_estimators_arguments(here):
    made = read(
        "train.py", "--source-dir", "code", "--instance-count", "2", "--distribution", "mpi", "--processes-per-host", "2",
        "--input", "train=data", "--input", "eval=s3://b/eval", "-p", "epochs=5", "--metric", "loss=loss=([0-9.]+)",
        "--env", "K=V=W", "--tag", "team=vision", "--output-path", "out", "--role", "r", "--job-name", "first",
        "--max-run", "60", "--set", "max_retry_attempts=3", "--set", 'subnets=["s-1"]', "--", "--rate", "1e-3", "--n-1=07",
    )  # fmt: skip
    assert made.arguments == {
        "entry_point": "train.py", "source_dir": "code", "instance_count": 2, "instance_type": "local_process",
        "distribution": {"mpi": {"enabled": True, "processes_per_host": 2}},
        "hyperparameters": {"epochs": 5, "rate": "1e-3", "n-1": "07"},
        "metric_definitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}], "environment": {"K": "V=W"},
        "tags": {"team": "vision"}, "output_path": f"file://{here}/out", "role": "r", "max_run": 60,
        "max_retry_attempts": 3, "subnets": ["s-1"],
    }  # fmt: skip
    assert made.inputs == {"train": f"file://{here}/data", "eval": "s3://b/eval"}
    assert made.job_name == "first"


@pytest.mark.parametrize(
    "words",
    [
        ("--output-path", "s3:/b/x"),
        ("--checkpoint-s3-uri", "file:/b/x"),
        ("--input", "a=s3:b/x"),
        ("--input", "a=s3//b/x"),
    ],
)
def test_a_uri_without_its_slashes_is_no_directory(here, words):
    scheme = "file:///b/x" if "file" in words[1] else "s3://b/x"
    with pytest.raises(SpecError, match=f"is no URI; write {scheme}, or ./[sf3ile]+[:/].* for a path"):
        read("train.py", *words)
    with pytest.raises(SpecError, match="write s3://b//x, or"):
        read("train.py", "--input", "a=s3:/b//x")
    assert read("train.py", "--output-path", "./s3:x").arguments["output_path"] == f"file://{here}/s3:x"


def test_options_for_parameter_servers_and_for_a_part_of_the_files(here):
    words = ["--distribution", "parameter-server", "--ps", "1", "--shard", "train", "--input", "train=data"]
    made = read("train.py", *words, "--input", "eval=s3://b/eval")
    assert made.arguments["distribution"] == {"parameter_server": {"enabled": True, "ps": 1}}
    assert made.inputs["train"] == TrainingInput(f"file://{here}/data", distribution="ShardedByS3Key")
    assert made.inputs["eval"] == "s3://b/eval"
    with pytest.raises(SpecError, match="--shard 'trian' is no channel; did you mean 'train'"):
        read("train.py", "--input", "train=data", "--shard", "trian")
    with pytest.raises(SpecError, match="--shard 'train' is no channel; add --input train=PATH"):
        read("train.py", "--shard", "train")


def test_options_are_merged_by_name_with_a_setting_too():
    said = {
        "hyperparameters": {"a": 1}, "environment": {"A": "1"}, "tags": {"a": "1"},
        "metric_definitions": [{"Name": "a", "Regex": "x"}], "distribution": {"mpi": {"enabled": True}},
    }  # fmt: skip
    first = [word for name, value in said.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    more = ["-p", "b=2", "--env", "B=2", "--tag", "b=2", "--metric", "b=y", "--processes-per-host", "2"]
    made = read("train.py", *first, *more).arguments
    assert made["hyperparameters"] == {"a": 1, "b": 2}
    assert made["environment"] == {"A": "1", "B": "2"}
    assert made["tags"] == {"a": "1", "b": "2"}
    assert [each["Name"] for each in made["metric_definitions"]] == ["a", "b"]
    assert made["distribution"] == {"mpi": {"enabled": True, "processes_per_host": 2}}


def test_a_setting_that_accepts_strings_is_what_was_typed():
    made = read(
        "train.py", "--set", "base_job_name=2024", "--set", 'code_location="s3://b"', "--set", "model_dir=false"
    )
    assert made.arguments["base_job_name"] == "2024"
    assert (made.arguments["code_location"], made.arguments["model_dir"]) == ("s3://b", False)


def test_the_groups_of_a_setting_are_json():
    text = '[{"instance_group_name": "leader", "instance_type": "local_process", "instance_count": 1}]'
    made = read("x.py", "--set", f"instance_groups={text}")
    assert made.arguments["instance_groups"] == [InstanceGroup("leader", "local_process", 1)]
    assert "instance_type" not in made.arguments


def test_advice_names_options_and_leaves_the_names_of_files(here):
    (here / "source_dir").mkdir()
    (here / "entry_point.py").write_text("")
    for words, advice in (
        (["train.py", "--source-dir", "source_di"], "did you mean 'source_dir'?"),
        (["entry_poin.py"], "did you mean 'entry_point.py'?"),
    ):
        done = CliRunner().invoke(scriptmode, ["plan", *words])
        assert (done.exit_code, advice in done.output) == (2, True), done.output
