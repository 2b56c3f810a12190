"""``scriptmode jobs``: Cloud ML Engine's words, on real jobs of this machine and requests to Amazon SageMaker."""

import json
import textwrap

import click
import pytest
from click.testing import CliRunner

from scriptmode import QuotaError, SourceError, SpecError, TrainingJob
from scriptmode_cli import scriptmode

#: Tells how it was started; a name that only the package's own folder on the path resolves.
TASK = """
import json, sys
from trainer import words

if __name__ == "__main__":
    print(json.dumps({"words": sys.argv[1:], "said": words.SAID}), flush=True)
"""
CUSTOM = "trainingInput: {scaleTier: CUSTOM, masterType: standard, workerType: n1-highcpu-8, workerCount: 2}"


@pytest.fixture
def package(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "words.py").write_text("SAID = 'by name'\n")
    (folder / "task.py").write_text(textwrap.dedent(TASK))
    return folder


def jobs(*words):
    """Run the command in this process; raise what it raises."""
    return CliRunner().invoke(scriptmode, ["jobs", *words], standalone_mode=False, catch_exceptions=False)


def submit(package, *words, name="mnist-1", module="trainer.task"):
    return jobs("submit", "training", name, "--package-path", str(package), "--module-name", module, *words)


def config(package, text):
    path = package.parent / "config.yaml"
    path.write_text(textwrap.dedent(text))
    return "--config", str(path)


def test_a_package_is_run_by_its_modules_name_with_the_arguments_as_they_were_given(package):
    words = ("--max_steps=100", "--rate", "1e-3", "--shift=-2", "-n", "07", "--empty=", "--text=a b=c")
    done = submit(package, "--stream-logs", "--staging-bucket", "staging", "--job-dir", "out", "--", *words)
    assert done.exit_code == 0, done.output
    assert "training job mnist-1 submitted: 1 master\n" in done.output
    (said,) = [json.loads(line.message) for line in TrainingJob.attach("mnist-1").logs() if line.message[:1] == "{"]
    assert said["said"] == "by name"
    pairs = dict(zip(said["words"][::2], said["words"][1::2]))
    assert pairs == {
        "--max_steps": "100", "--rate": "1e-3", "--shift": "-2", "-n": "07", "--empty": "", "--text": "a b=c",
        "--job-dir": str(package.parent / "out"),
    }  # fmt: skip
    assert list((package.parent / "staging" / "packages").rglob("sourcedir.tar.gz"))


@pytest.mark.parametrize(("lead", "more"), [("master", ""), ("chief", ", useChiefInTfConfig: true")])
def test_a_custom_tier_is_a_cluster_of_hosts_with_one_role_each(package, lead, more):
    text = CUSTOM.replace("}", f", parameterServerType: large_model, parameterServerCount: '1'{more}}}")
    # The command line wins over the file.
    done = submit(package, *config(package, text), "--worker-count", "1", "--input", f"train={package}")
    assert done.exit_code == 0, done.output
    job = TrainingJob.attach("mnist-1")
    groups = {group["InstanceGroupName"]: group for group in job.describe()["ResourceConfig"]["InstanceGroups"]}
    assert {name: group["InstanceCount"] for name, group in groups.items()} == {lead: 1, "worker": 1, "ps": 1}
    assert {group["InstanceType"] for group in groups.values()} == {"local_process"}
    assert job.inputs()["train"].instance_groups == (lead, "worker")
    job.stop()


def test_a_package_beside_a_setup_py_is_installed_as_gcloud_does(package, monkeypatch):
    from scriptmode_cli._cloud_ml_engine.package import source_arguments

    launched = source_arguments(package, "trainer.task", package.parent)
    assert launched["dependencies"] == [str(package)]
    (package.parent / "setup.py").touch()
    installed = source_arguments(package, "trainer.task", package.parent)
    assert installed == {"source_dir": str(package.parent), "entry_point": "trainer/task.py"}


def test_more_machines_than_this_one_bears_are_refused_without_force(package):
    many = "workerCount: 2000, parameterServerCount: 1, parameterServerType: standard"
    machines = config(package, CUSTOM.replace("workerCount: 2", many))
    with pytest.raises(QuotaError, match="2,002 processes at once .*--force"):
        submit(package, *machines)


def test_arguments_that_are_not_hyperparameters_are_passed_as_they_are(package):
    words = ["train", "--rate=1", "--rate=2", "--hidden_units", "128", "32", "-max_steps=1", "--", "-x", "-1"]
    submit(package, "--job-dir", "/out", "--", *words)
    parameters = TrainingJob.attach("mnist-1").describe()["HyperParameters"]
    assert json.loads(parameters["sagemaker_program_arguments"]) == [*words, "--job-dir", "/out"]
    assert "rate" not in parameters


CONFIGS = {
    "trainingInput: {workerCounts: 3}": "has no key 'workerCounts'; did you mean 'workerCount'?",
    "trainingInput: {scaleTier: STANDARD1}": "there is no scaleTier 'STANDARD1'; did you mean 'STANDARD_1'?",
    "trainingInput: {args: --max_steps=1}": "args is '--max_steps=1'; write a list",
    "trainingInput: {args: [--max_steps, 1000]}": "args is ['--max_steps', 1000]; write a list of strings",
    "trainingInput: {scaleTier: BASIC_TPU}": "there is no scaleTier 'BASIC_TPU'",
    "trainingInput: {scaleTier: STANDARD_1, workerCount: 9}": "workerCount is 9, but scaleTier STANDARD_1 sets it",
    CUSTOM: "workers without a parameter server cannot share variables; add parameterServerCount: 1",
    "trainingInput: {parameterServerCount: -1}": "parameterServerCount is -1; write a whole number of at least 0",
    "trainingInput: {runtimeVersion: 2.10}": "runtimeVersion is 2.1; write a text in quotes",
    "a: [": "is not valid YAML: line 1, column 5: expected",
}


@pytest.mark.parametrize(("text", "message"), CONFIGS.items(), ids=list(CONFIGS))
def test_a_wrong_config_names_the_key_the_value_and_the_next_step(package, text, message):
    with pytest.raises(SpecError) as caught:
        submit(package, *config(package, text))
    assert message in str(caught.value)
    assert list(TrainingJob.list("local")) == []


OPTIONS = [
    (["--job-dir", "gs://bucket/x"], SpecError, "give an s3:// URI or a directory"),
    (["--staging-bucket", "gs://bucket"], SpecError, "give an 's3://...' URI"),
    (["--platform", "sagemaker"], SpecError, "masterType is '', which is no instance type.*in --config"),
    (["--input", "train"], click.UsageError, "'train' does not have the form NAME=VALUE; write --input train=s3"),
    (["--config", "nowhere.yaml"], click.BadParameter, "'nowhere.yaml': No such file or directory"),
    (["--module-name", "trainer.tusk"], SourceError, "'trainer.tusk' is not a module of the package 'trainer'"),
    (["--module-name", "task"], SourceError, "'task' is not a module of the package 'trainer'; write .*trainer.task"),
    (["--package-path", "."], SourceError, "not a Python package: it has no __init__.py"),
]


@pytest.mark.parametrize(("words", "error", "message"), OPTIONS, ids=[" ".join(words) for words, _, _ in OPTIONS])
def test_a_wrong_option_is_an_error_with_the_next_step(package, words, error, message):
    with pytest.raises(error, match=message):
        submit(package, *words)


def test_machines_of_amazon_sagemaker_are_a_cluster_of_hosts_with_one_role_each(package, monkeypatch):
    from scriptmode.testing import FakeSageMaker
    from scriptmode_cli._cloud_ml_engine import jobs as commands

    fake = FakeSageMaker()
    fake.buckets["bucket"] = fake.account
    real = commands.Estimator
    monkeypatch.setattr(commands, "Estimator", lambda **given: real(**given, sagemaker_session=fake))
    text = (
        "trainingInput: {scaleTier: CUSTOM, masterType: ml.c5.2xlarge, workerType: ml.c5.2xlarge, workerCount: 4, "
        "parameterServerType: ml.m5.xlarge, parameterServerCount: 3}"
    )
    done = submit(
        package, "--platform", "sagemaker", *config(package, text), "--staging-bucket", "s3://bucket/staging",
        "--image-uri", "img:1", "--role", "arn:aws:iam::123456789012:role/r", "--job-dir", "s3://bucket/out",
        "--", "--max_steps=9",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    request = next(call for call in fake.calls if call.operation == "create_training_job").arguments
    groups = [tuple(group.values()) for group in request["ResourceConfig"]["InstanceGroups"]]
    assert groups == [("master", "ml.c5.2xlarge", 1), ("worker", "ml.c5.2xlarge", 4), ("ps", "ml.m5.xlarge", 3)]
    assert request["HyperParameters"]["max_steps"] == '"9"'
    assert request["HyperParameters"]["job-dir"] == '"s3://bucket/out"'
    assert request["OutputDataConfig"]["S3OutputPath"] == "s3://bucket/staging"


def test_the_error_for_arguments_without_the_two_dashes_says_where_to_write_them(package):
    for words in (["--max_steps=9"], ["train"]):
        with pytest.raises(click.UsageError, match="write arguments of the script after --"):
            submit(package, *words)
    assert list(TrainingJob.list("local")) == []
