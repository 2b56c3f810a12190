"""What ``run`` and ``plan`` parse from options and files: an estimator's arguments, or an error with the next step."""

import json
import textwrap
from pathlib import Path

import click
import pytest
from fakes.command_line import invoke

from scriptmode import FileSystemInput, InstanceGroup, SpecError, TrainingInput, TrainingJob
from scriptmode_cli._commands.run import run
from scriptmode_cli._options.program_arguments import arguments_after_dashes
from scriptmode_cli._options.run_options import RunOptions


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part").write_text("1")
    (tmp_path / "jobs" / "data").mkdir(parents=True)
    return tmp_path


def read(*words):
    """Parse the words of ``run`` without starting a job."""
    found = []

    @click.pass_context
    def callback(_context, *, wait, is_plain, as_json, **given):
        found.append(RunOptions.parse(given, arguments_after_dashes()))

    type(run)("run", params=run.params, callback=callback).main(list(words), standalone_mode=False)
    return found[0]


def file(text, name="job.toml"):
    path = Path("jobs", name)
    path.write_text(textwrap.dedent(text))
    return str(path)


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


def test_options_for_parameter_servers_and_for_a_part_of_the_files(here):
    words = ["--distribution", "parameter-server", "--ps", "1", "--shard", "train", "--shard", "eval"]
    made = read("--file", file(TOML.replace("multi-worker-mirrored", "mpi")), *words, "--input", "train=data")
    assert made.arguments["distribution"] == {"parameter_server": {"enabled": True, "ps": 1}}
    assert made.inputs["train"] == TrainingInput(f"file://{here}/data", distribution="ShardedByS3Key")
    assert (made.inputs["eval"].s3_data, made.inputs["eval"].distribution) == ("s3://b/eval", "ShardedByS3Key")
    with pytest.raises(SpecError, match="--shard 'trian' is no channel of objects; did you mean 'train'"):
        read("train.py", "--input", "train=data", "--shard", "trian")


TOML = """
    entry_point = "train.py"
    instance_count = 2
    distribution = "multi-worker-mirrored"
    output_path = "out"
    dependencies = ["lib"]
    job_name = "of-the-file"
    hyperparameters = { epochs = 5, rate = 0.1, flag = true }
    tags = [{ Key = "team", Value = "vision" }]
    metric_definitions = [{ Name = "loss", Regex = "a" }]
    [inputs]
    train = "data"
    eval = { s3_data = "s3://b/eval", distribution = "ShardedByS3Key", shuffle_config = { seed = 3 } }
    files = { file_system_id = "fs-1", file_system_type = "EFS", directory_path = "/x" }
"""
YAML = """
    entry_point: train.py
    instance_count: 2
    distribution: {multi_worker_mirrored_strategy: {enabled: true}}
    output_path: out
    dependencies: [lib]
    job_name: of-the-file
    hyperparameters: {epochs: 5, rate: 0.1, flag: true}
    tags: {team: vision}
    metric_definitions: [{Name: loss, Regex: a}]
    inputs:
      train: data
      eval: {s3_data: "s3://b/eval", distribution: ShardedByS3Key, shuffle_config: {seed: 3}}
      files: {file_system_id: fs-1, file_system_type: EFS, directory_path: /x}
"""


@pytest.mark.parametrize(("name", "text"), [("job.toml", TOML), ("job.yml", YAML)], ids=["toml", "yaml"])
def test_a_job_file_has_the_same_arguments_and_its_paths_begin_at_its_directory(here, name, text):
    made = read("--file", file(text, name))
    assert made.arguments["entry_point"] == "jobs/train.py"
    assert made.arguments["dependencies"] == ["jobs/lib"]
    assert made.arguments["output_path"] == f"file://{here}/jobs/out"
    assert made.arguments["distribution"] == {"multi_worker_mirrored_strategy": {"enabled": True}}
    assert made.arguments["hyperparameters"] == {"epochs": 5, "rate": 0.1, "flag": True}
    assert made.inputs["train"] == f"file://{here}/jobs/data"
    assert isinstance(made.inputs["eval"], TrainingInput)
    assert (made.inputs["eval"].distribution, made.inputs["eval"].shuffle_config.seed) == ("ShardedByS3Key", 3)
    assert made.inputs["files"] == FileSystemInput("fs-1", "EFS", "/x")
    assert made.job_name == "of-the-file"


def test_options_override_the_file_and_mappings_are_merged_by_name(here):
    made = read(
        "--file", file(TOML), "--instance-count", "3", "--output-path", "mine", "--job-name", "mine", "-p", "epochs=6",
        "--tag", "team=speech", "--tag", "new=1", "--metric", "accuracy=b", "--input", "train=s3://b/train", "other.py",
    )  # fmt: skip
    assert made.arguments["entry_point"] == "other.py"
    assert made.arguments["instance_count"] == 3
    assert made.arguments["output_path"] == f"file://{here}/mine"
    assert made.arguments["hyperparameters"] == {"epochs": 6, "rate": 0.1, "flag": True}
    assert made.arguments["tags"] == {"team": "speech", "new": "1"}
    assert made.arguments["metric_definitions"] == [{"Name": "loss", "Regex": "a"}, {"Name": "accuracy", "Regex": "b"}]
    assert (made.inputs["train"], made.job_name) == ("s3://b/train", "mine")


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


def test_the_script_of_a_file_with_a_source_directory_is_within_it():
    made = read("--file", file('entry_point = "train.py"\nsource_dir = "code"\n'))
    assert (made.arguments["entry_point"], made.arguments["source_dir"]) == ("train.py", "jobs/code")
    other = read("--file", file('entry_point = "train.py"\n'), "--source-dir", "mine")
    assert (other.arguments["entry_point"], other.arguments["source_dir"]) == ("train.py", "mine")
    remote = read("--file", file('entry_point = "train.py"\nsource_dir = "s3://b/sourcedir.tar.gz"\n'))
    assert remote.arguments["source_dir"] == "s3://b/sourcedir.tar.gz"


def test_instance_groups_are_tables_or_json():
    group = [InstanceGroup("leader", "local_process", 1)]
    table = '[[instance_groups]]\ninstance_group_name = "leader"\ninstance_type = "local_process"\ninstance_count = 1\n'
    assert read("--file", file(table)).arguments["instance_groups"] == group
    text = '[{"instance_group_name": "leader", "instance_type": "local_process", "instance_count": 1}]'
    assert read("x.py", "--set", f"instance_groups={text}").arguments["instance_groups"] == group


FILES = {
    "a key of v1": ("train_instance_count = 2", "there is no argument 'train_instance_count'; did you mean 'instance_count'?"),
    "a text for a number": ("instance_count = 'two'", "instance_count is 'two'; write a whole number"),
    "a text for a list": ("subnets = 'subnet-1'", "subnets is 'subnet-1'; write a list"),
    "a list for a table": ("hyperparameters = [1]", "hyperparameters is [1]; write names and values"),
    "an object": ("platform = 'local'", "platform cannot be written as text; instance_type selects the platform"),
    "a session": ("sagemaker_session = 'x'", "sagemaker_session cannot be written as text; use --region and --profile"),
    "an input of a number": ("inputs = {train = 3}", "inputs.train is 3; write a location, or a table"),
    "an input misspelled": ("inputs = {train = {s3_dat = 'x'}}", "inputs.train has no key 's3_dat'; did you mean 's3_data'?"),
    "an input of nothing": ("inputs = {train = {input_mode = 'Pipe'}}", "missing 1 required positional argument: 's3_data'; write the fields of TrainingInput"),
    "an input's URI that is not there": ("inputs = {train = {s3_data = 'nodir'}}", "inputs.train.s3_data 'nodir': there is no file or directory"),
    "an input with a capital": ("inputs = {train = 'S3://b/x'}", "inputs['train'] is 'S3://b/x', with the scheme 'S3'; give an s3:// URI or a path (jobs/job.toml)"),
    "a list of inputs": ("inputs = ['x']", "inputs is ['x']; write a table of channels"),
    "half a group": ("instance_groups = [{instance_type = 'local_process'}]", "missing 2 required positional arguments: 'instance_group_name' and"),
    "a folder on SageMaker": ("instance_type = 'ml.m5.large'\ninputs = {train = 'data'}", "'data' is not an s3:// URI, which Amazon SageMaker needs"),
    "tags of neither form": ("tags = ['x']", "tags is ['x'], which is not a list of {'Key': ..., 'Value': ...}"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=list(FILES))
def test_a_wrong_file_names_itself_the_key_the_value_and_the_next_step(text, message):
    done = invoke("run", "--file", file(text), "--tag", "a=b")
    assert (done.exit_code, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert message in said
    assert "job.toml" in said or "correct the file" in said
    assert TrainingJob.list("local") == []


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_job_file_without_its_option_is_not_started_as_a_program(verb):
    done = invoke(verb, "my job.toml")
    assert done.exit_code == 2
    assert "my job.toml is not a program; if it is a job file, write --file 'my job.toml'" in done.stderr
