"""What ``run`` and ``plan`` parse from options and files: an estimator's arguments, or an error with the next step."""

import json
import textwrap

import click
import pytest
from fakes.command_line import invoke

from scriptmode import FileSystemInput, InstanceGroup, SourceError, TrainingInput, TrainingJob
from scriptmode.cli.commands.run import run
from scriptmode.cli.error_translation import error_text, translate_errors_to_options
from scriptmode.cli.program_arguments import arguments_after_dashes
from scriptmode.cli.run_options import RunOptions
from scriptmode.errors import with_suffix


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part").write_text("1")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "data").mkdir()
    return tmp_path


def read(*words):
    """Parse the words of ``run`` without starting a job."""
    found = []

    @click.pass_context
    def callback(_context, *, wait, is_plain, as_json, **given):
        found.append(RunOptions.parse(given, arguments_after_dashes()))

    type(run)("run", params=run.params, callback=callback).main(list(words), standalone_mode=False)
    return found[0]


def file(text, name="job.toml", folder="jobs"):
    from pathlib import Path

    Path(folder).mkdir(exist_ok=True)
    path = Path(folder, name)
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
        "entry_point": "train.py",
        "source_dir": "code",
        "instance_count": 2,
        "instance_type": "local_process",
        "distribution": {"mpi": {"enabled": True, "processes_per_host": 2}},
        "hyperparameters": {"epochs": 5, "rate": "1e-3", "n-1": "07"},
        "metric_definitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        "environment": {"K": "V=W"},
        "tags": {"team": "vision"},
        "output_path": f"file://{here}/out",
        "role": "r",
        "max_run": 60,
        "max_retry_attempts": 3,
        "subnets": ["s-1"],
    }
    assert made.inputs == {"train": f"file://{here}/data", "eval": "s3://b/eval"}
    assert made.job_name == "first"


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


@pytest.mark.parametrize(("name", "text"), [("job.toml", TOML), ("job.yaml", YAML), ("job.yml", YAML)], ids=["toml", "yaml", "yml"])  # fmt: skip
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


@pytest.mark.parametrize("how", ["file", "--set"])
def test_options_are_merged_by_name_with_a_setting_too(how):
    said = {
        "hyperparameters": {"a": 1}, "environment": {"A": "1"}, "tags": {"a": "1"},
        "metric_definitions": [{"Name": "a", "Regex": "x"}], "distribution": {"mpi": {"enabled": True}},
    }  # fmt: skip
    if how == "file":
        first = ["--file", file(json.dumps(said), "job.yaml")]
    else:
        first = [
            "train.py",
            *(word for name, value in said.items() for word in ("--set", f"{name}={json.dumps(value)}")),
        ]
    made = read(
        *first, "-p", "b=2", "--env", "B=2", "--tag", "b=2", "--metric", "b=y", "--processes-per-host", "2"
    ).arguments  # fmt: skip
    assert made["hyperparameters"] == {"a": 1, "b": 2}
    assert made["environment"] == {"A": "1", "B": "2"}
    assert made["tags"] == {"a": "1", "b": "2"}
    assert [each["Name"] for each in made["metric_definitions"]] == ["a", "b"]
    assert made["distribution"] == {"mpi": {"enabled": True, "processes_per_host": 2}}


def test_a_path_in_an_option_begins_at_the_current_directory(here):
    made = read("--file", file('output_path = "out"\nentry_point = "train.py"\n'), "--output-path", "out")
    assert made.arguments["output_path"] == f"file://{here}/out"


def test_a_setting_that_accepts_strings_is_what_was_typed():
    made = read(
        "train.py", "--set", "base_job_name=2024", "--set", 'code_location="s3://b"', "--set", "model_dir=false"
    )
    assert made.arguments["base_job_name"] == "2024"
    assert (made.arguments["code_location"], made.arguments["model_dir"]) == ("s3://b", False)


@pytest.mark.parametrize("text", ["d: 2020-13-45", "[" * 5000, "a: &a [*a]"], ids=["a date", "deep", "in itself"])
@pytest.mark.parametrize(
    "words",
    [["run", "--file"], ["jobs", "submit", "training", "j", "--package-path", "p", "--module-name", "p.t", "--config"]],
    ids=["run", "jobs"],
)
def test_the_error_for_invalid_yaml_is_one_line_with_the_name_of_the_file(words, text):
    done = invoke(*words, file(text, "job.yaml"))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("scriptmode: jobs/job.yaml ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"entry_point: a.py\nentry_point: b.py\n",
            "jobs/job.yaml is refused: the key 'entry_point' in line 2 is in line 1",
        ),
        (b"\xff\xfee\0n\0", "--file 'jobs/job.yaml' is not UTF-8: byte 1 is 0xff; save it as UTF-8\n"),
        (None, "--file 'jobs/job.yaml' cannot be read: No such file or directory; name a TOML or YAML file\n"),
    ],
    ids=["a key twice", "UTF-16", "absent"],
)
def test_the_error_for_an_unusable_file_names_it_once_with_the_next_step(content, message):
    from pathlib import Path

    path = Path(file("", "job.yaml"))
    path.unlink() if content is None else path.write_bytes(content)
    done = invoke("plan", "--file", str(path))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("job.yaml") == 1


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
    "a key misspelled": ("instance_cuont = 2", "there is no argument 'instance_cuont'; did you mean 'instance_count'?"),
    "a key of v1": ("train_instance_count = 2", "there is no argument 'train_instance_count'; did you mean 'instance_count'?"),
    "a key of nowhere": ("zzzz = 2", "there is no argument 'zzzz'"),
    "a text for a number": ("instance_count = 'two'", "instance_count is 'two'; write a whole number, such as instance_count = 2"),
    "a truth for a number": ("instance_count = true", "instance_count is True; write a whole number"),
    "a number for a text": ("role = 3", 'role is 3; write a string, such as role = "text"'),
    "a text for a truth": ("use_spot_instances = 'yes'", "use_spot_instances is 'yes'; write true or false"),
    "a text for a list": ("subnets = 'subnet-1'", "subnets is 'subnet-1'; write a list"),
    "a list for a table": ("hyperparameters = [1]", "hyperparameters is [1]; write names and values"),
    "an object": ("platform = 'local'", "platform cannot be written as text; instance_type selects the platform"),
    "a session": ("sagemaker_session = 'x'", "sagemaker_session cannot be written as text; use --region and --profile"),
    "no TOML": ("a = = 1", "is not valid TOML"),
    "no such distribution": ("distribution = 'mpl'", "distribution is 'mpl'; did you mean 'mpi'?"),
    "an input of a number": ("inputs = {train = 3}", "inputs.train is 3; write the fields of TrainingInput, such as {s3_data = ...}"),
    "an input misspelled": ("inputs = {train = {s3_dat = 'x'}}", "inputs.train has no key 's3_dat'; did you mean 's3_data'?"),
    "an input of nothing": ("inputs = {train = {input_mode = 'Pipe'}}", "inputs.train has no s3_data, which TrainingInput needs"),
    "an input that is not there": ("inputs = {train = 'nodir'}", "inputs.train 'nodir': there is no file or directory"),
    "an input's URI that is not there": ("inputs = {train = {s3_data = 'nodir'}}", "inputs.train.s3_data 'nodir': there is no file or directory"),
    "an input of Google's": ("inputs = {train = 'gs://b/x'}", "inputs.train 'gs://b/x' is in Google Cloud Storage"),
    "an input of a mode": ("inputs = {train = {s3_data = 's3://b/x', input_mode = 'Fast'}}", "input_mode is 'Fast'"),
    "a list of inputs": ("inputs = ['x']", "inputs is ['x']; write channels"),
    "half a group": ("instance_groups = [{instance_type = 'local_process'}]", "has no instance_group_name, which InstanceGroup needs"),
    "a folder on SageMaker": ("instance_type = 'ml.m5.large'\ninputs = {train = 'data'}", "'data' is not in S3, which Amazon SageMaker needs"),
    "a home of nobody": ("output_path = '~nobody-here/x'", "output_path '~nobody-here/x' begins with a home directory that cannot be determined"),
    "dependencies of numbers": ("dependencies = [1]", "dependencies is [1]; write a list of files and directories"),
    "an input's groups": ("inputs = {train = {s3_data = 's3://b/x', instance_groups = 1}}", "inputs.train.instance_groups is 1; write a list of names"),
    "an input of places": ("inputs = {train = {s3_data = ['s3://b/x']}}", "inputs.train.s3_data is ['s3://b/x']; write one URI as a string"),
    "a group of no type": ("instance_groups = [{instance_group_name = 'x', instance_type = 1, instance_count = 1}]", "instance_type"),
    "a name of a number": ("job_name = 3", "job_name is 3; write a string"),
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


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("job.yaml", "instance_count: two", "write a whole number, such as instance_count: 2"),
        ("job.yaml", "inputs: {train: 5}", "such as {s3_data: ...}"),
        ("job.yaml", "hyperparameters: 1", 'such as hyperparameters: {name: "value"}'),
        ("job.yaml", "", 'job.yaml is empty; write names and values, such as entry_point: "train.py"'),
        ("job.toml", "hyperparameters = 1", 'such as hyperparameters = {name = "value"}'),
        ("job.toml", "", 'job.toml is empty; write names and values, such as entry_point = "train.py"'),
    ],
)
def test_the_advice_about_a_file_is_in_the_format_of_the_file(name, text, message):
    assert message in invoke("run", "--file", file(text, name)).stderr


def test_an_option_that_takes_a_number_says_so():
    done = invoke("run", "train.py", "--max-run", "x")
    assert "'x' is not a whole number of at least 1" in done.stderr


WORDS = {
    "no file": (["--file", "nowhere.toml"], "--file 'nowhere.toml' cannot be read"),
    "a file of another kind": (["--file", "train.py"], "--file 'train.py' ends in '.py'; rename it to end in .toml"),
    "no program": ([], "entry_point is missing"),
    "no such program": (["trian.py"], "did you mean 'train.py'"),
    "a place in S3 misspelled": (["train.py", "--input", "train=gs://b"], "--input train 'gs://b' is in Google Cloud Storage"),
    "no folder": (["train.py", "--input", "train="], "--input train '' does not name a directory"),
    "a folder that is not there": (["train.py", "--input", "train=nowhere"], "--input train 'nowhere': there is no file or directory"),
    "a folder for SageMaker": (["train.py", "--instance-type", "ml.m5.large", "--input", "train=data"], "--input train 'data' is not in S3"),
    "output for SageMaker": (["train.py", "--instance-type", "ml.m5.large", "--output-path", "x"], "--output-path 'x' is not in S3"),
    "SageMaker without a type": (["train.py", "--platform", "sagemaker"], "--instance-type is missing, but Amazon SageMaker needs one"),
    "a type of elsewhere": (["train.py", "--platform", "local", "--instance-type", "ml.m5.large"], "--platform is 'local', but the instance type 'ml.m5.large' belongs to Amazon SageMaker"),
    "a type of nowhere": (["train.py", "--instance-type", "locl"], "instance_type 'locl' is neither"),
    "a distribution": (["train.py", "--distribution", "mpl"], "--distribution is 'mpl'; did you mean 'mpi'?"),
    "ranks without mpi": (["train.py", "--processes-per-host", "2"], "--processes-per-host configures a distribution, but none is enabled"),
    "a coordinator of mpi": (["train.py", "--distribution", "mpi", "--coordinator"], "has no key 'coordinator'"),
    "a setting misspelled": (["train.py", "--set", "max_wiat=3"], "--set: there is no argument 'max_wiat'; did you mean 'max_wait'?"),
    "a setting without JSON": (["train.py", "--set", "subnets=[1"], "--set subnets is '[1', which is not valid JSON"),
    "a setting of another kind": (["train.py", "--set", "max_wait=soon"], "--set max_wait is 'soon'; write a whole number, such as max_wait=2"),
    "said twice": (["train.py", "--max-run", "3", "--set", "max_run=4"], "--set max_run and --max-run both set max_run"),
    "set twice": (["train.py", "--set", "environment={}", "--set", "environment={}"], "--set environment is given twice; remove one"),
    "inputs": (["train.py", "--set", "inputs=x"], "--set inputs: inputs is not an argument of the estimator; use --input"),
    "a name": (["train.py", "--set", "job_name=x"], "use --job-name"),
    "inputs misspelled": (["train.py", "--set", "inptus=x"], "there is no argument 'inptus'; did you mean 'inputs'?"),
    "a setting too deep": (["train.py", "--set", f"hyperparameters={'[' * 50000}"], "--set hyperparameters is nested too deeply"),
    "a hyperparameter twice": (["train.py", "-p", "n=1", "--", "-n", "2"], "n is given by --hyperparameter and after --"),
    "a job's name": (["train.py", "--job-name", "my_job"], "job_name 'my_job' is not 1 to 63 letters"),
    "a version": (["train.py", "--framework-version", "9.9"], "(--framework-version)"),
    "spot without a wait": (["train.py", "--set", "max_wait=3"], "(--set max_wait=..."),
    "no role": (["train.py", "--instance-type", "ml.m5.large", "--region", "us-east-1", "--image-uri", "i"], "(--role"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WORDS.values(), ids=list(WORDS))
def test_the_error_for_a_wrong_option_names_the_option(words, message):
    done = invoke("run", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert message in said
    assert TrainingJob.list("local") == []


@pytest.mark.parametrize(
    ("argument", "said"),
    [("framework_version", "it is wrong; leave it out (--framework-version)"), ("volume", "it is wrong; leave it out"), (None, "it is wrong; leave it out")],
)  # fmt: skip
def test_an_error_of_the_library_names_the_option_of_the_argument(argument, said):
    options = {"framework_version": "--framework-version", "role": "--role"}
    with pytest.raises(SourceError) as caught, translate_errors_to_options(options):
        raise SourceError("it is wrong", argument=argument, advice="leave it out")
    assert str(caught.value) == said
    assert (caught.value.message, caught.value.argument) == ("it is wrong", argument)
    assert caught.value.advice == said[len("it is wrong; ") :]


def test_an_option_of_every_command_is_named_once():
    with pytest.raises(SourceError) as caught, translate_errors_to_options({"region": "--region"}):
        raise SourceError("it is wrong", argument="region", advice="leave it out")
    assert error_text(caught.value) == "it is wrong; leave it out (--region)"


def test_an_error_with_a_suffix_keeps_its_message_argument_and_advice():
    found = with_suffix(SourceError("it is wrong", argument="role", advice="try again"), "(tried twice)")
    assert (str(found), found.argument) == ("it is wrong; try again (tried twice)", "role")
    assert (found.message, found.advice) == ("it is wrong", "try again (tried twice)")
    assert str(with_suffix(SourceError("it is wrong"), "(tried twice)")) == "it is wrong (tried twice)"
