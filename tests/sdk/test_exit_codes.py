"""The exit codes of wrong inputs: 2 where the caller's input is wrong before anything starts, over all verbs."""

from pathlib import Path

import pytest
from fakes.command_line import invoke

from scriptmode import Estimator, SpecError, TrainingJob
from scriptmode_cli._program.error_reporting import translate_errors_to_options

ARN = "arn:aws:iam::123456789012:role/r"
CLOUD = ("--instance-type", "ml.m5.large", "--role", ARN, "--image-uri", "i")
FILES = {"train.py": "print('loss=0.5')", "notebook.ipynb": "{}", "full/a": "1", "bad.toml": "a = = 1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCRIPTMODE_DATA_DIR", str(folder / "data"))
        program = str(folder / "train.py")
        Estimator(entry_point=program, instance_type="local_process").fit(logs=False, job_name="taken")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch, no_settings, no_credentials):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(folder / "data"))
    monkeypatch.chdir(folder)


#: Options of ``run train.py``, and what the error says.
RUN = {
    "an input that is missing": (["--input", "train=nowhere"], "--input train 'nowhere': there is no file or directory"),
    "an input with nothing in it": (["--input", "train=empty"], "there is nothing in it; put files into it"),
    "an input of another scheme": (["--input", "train=ftp://x/y"], "with the scheme 'ftp'; give an s3:// URI or a path"),
    "an input without a value": (["--input", "train"], "does not have the form NAME=VALUE"),
    "an input twice": (["--input", "a=full", "--input", "a=full"], "is given twice"),
    "a number": (["--instance-count", "two"], "'two' is not a valid integer; write a whole number of at least 1"),
    "no host": (["--instance-count", "0"], "0 is not in the range x>=1"),
    "a type of EC2": (["--instance-type", "m5.large"], "nor, as 'ml.p3.2xlarge', Amazon's; did you mean 'ml.m5.large'?"),
    "a type in capitals": (["--instance-type", "Slurm:gpu"], "did you mean 'slurm:gpu'?"),
    "a partition without a name": (["--instance-type", "slurm:"], "write 'slurm' or 'slurm:PARTITION'"),
    "GPUs that are no number": (["--instance-type", "kubernetes:gpu=two"], "write 'kubernetes' or 'kubernetes:gpu=N'"),
    "SageMaker without a Region": ([*CLOUD], "no AWS region is set; set AWS_DEFAULT_REGION or run 'aws configure' (--region)"),
    "a role's name without a Region": (["--instance-type", "ml.m5.large", "--role", "r", "--image-uri", "i"], "set AWS_DEFAULT_REGION or run 'aws configure' (--region)"),
    "another distribution": (["--distribution", "ring"], "use one of horovod, mpi, multi-worker-mirrored, multi-worker-mirrored-strategy, parameter-server"),
    "ranks without MPI": (["--processes-per-host", "2"], "--processes-per-host configures a distribution, but none is enabled; add --distribution"),
    "servers of another distribution": (["--distribution", "mpi", "--ps", "1"], "distribution['mpi'] has no key 'ps', an option of parameter_server; leave it out"),
    "a hyperparameter's name with a blank": (["-p", "epochs = 3"], "-p 'epochs = 3' does not have the form NAME=VALUE"),
    "a name with a blank": (["--job-name", "a b"], "write 'a-b'"),
    "output that cannot be written": (["--output-path", "/proc/x"], "output_path '/proc/x' cannot be written"),
    "output in a file": (["--output-path", "train.py"], "File exists; name another folder (--output-path)"),
    "a setting of another type": (["--set", "max_wait=abc"], "--set max_wait is 'abc'; write a whole number"),
    "a setting with a typo": (["--set", "max_wiat=3"], "--set max_wiat: there is no argument 'max_wiat'; did you mean 'max_wait'?"),
    "names that are no JSON": (["--set", "hyperparameters={epochs: 3}"], 'write names and values as JSON, such as {"name": 1}'),
    "an object": (["--set", "platform=local"], "platform cannot be written as text; instance_type selects the platform"),
    "half a group": (["--set", 'instance_groups=[{"instance_count": 1}]'], "write an object of instance_group_name, instance_type, instance_count"),
    "tags of neither form": (["--set", 'tags=["x"]', "--tag", "a=b"], "tags is ['x']; give a dict or a list of {'Key': ..., 'Value': ...}"),
    "an option of the script": (["--epochs", "5"], "'; write arguments of the script after --: scriptmode run PROGRAM -- --epochs ..."),
    "an option misspelled": (["--instance_count", "2"], "did you mean '--instance-count'? Write arguments of the script"),
    "hosts": (["-n", "2"], "; write --instance-count N, and arguments of the script after --"),
    "an argument without an option": (["--max-wait", "5"], "write --set max_wait=VALUE, or --max-wait after -- for"),
    "a platform": (["--platform", "local"], "write --instance-type TYPE, which selects the platform, and arg"),
    "no host that trains": (["--distribution", "parameter-server", "--ps", "1"], "give more hosts (--instance-count)"),
    "no image": (["--instance-type", "local_gpu"], "give --framework-version for AWS's own, or --image-uri, or build"),
    "a container": (["--instance-type", "docker"], "did you mean 'local'?"),
    "an option as a hyperparameter": (["-p", "--lr=1"], "'--lr' begins with a dash; leave its dashes out"),
    "a word": (["full"], "unexpected extra argument (full); write arguments of the script after --"),
    "said twice": (["--max-run", "3", "--set", "max_run=4"], "--set max_run and --max-run both set max_run"),
    "set twice": (["--set", "environment={}", "--set", "environment={}"], "--set environment is given twice; remove one"),
    "inputs": (["--set", "inputs=x"], "--set inputs: inputs is not an argument of the estimator; use --input"),
    "a name": (["--set", "job_name=x"], "use --job-name"),
    "a hyperparameter twice": (["-p", "n=1", "--", "-n", "2"], "n is given by --hyperparameter and after --"),
    "a queue of others": (["--queue", *CLOUD], "--queue is for jobs of this machine"),
    "no role": (["--instance-type", "ml.m5.large", "--region", "us-east-1", "--image-uri", "i"], "(--role"),
}  # fmt: skip
#: All other words, the exit code, and what the error says.
OTHERS = {
    "no program": (["run"], 2, "there is no PROGRAM; name one, before --"),
    "a job in place of a verb": (["model", "taken"], 2, "use download"),
    "a status without its option": (["list", "running"], 2, "extra argument (running); write scriptmode list [OPTIONS]"),
    "arguments of a rerun": (["rerun", "taken", "--", "--lr", "1"], 2, "write scriptmode rerun [OPTIONS] [JOB] [-p NAME=VALUE]"),
    "a program that is missing": (["run", "wrds.py"], 2, "correct it (PROGRAM)"),
    "a directory as the program": (["run", "full"], 2, "name the file itself"),
    "data as the program": (["run", "bad.toml"], 2, "not a program; name a script: .py, .sh, or a file whose first line has its interpreter, such as #!/bin/sh (PROGRAM)"),
    "a notebook as the program": (["run", "notebook.ipynb"], 2, "jupyter nbconvert --to script notebook.ipynb"),
    "a volume without a size": (["serve", "manifests", "--image", "x", "--storage", "lots"], 2, "--storage is 'lots'; write a size such as 100Gi"),
    "TOML that is broken": (["serve", "--config", "bad.toml"], 2, "bad.toml is not valid TOML"),
    "a plan's input": (["plan", "train.py", "--input", "train=empty"], 2, "there is nothing in it"),
    "no job": (["describe"], 2, "JOB is missing; name a job, or add --last for the newest one"),
    "the ARN of a job": (["describe", "arn:aws:sagemaker:us-east-1:000000000000:training-job/taken"], 1, "its name is 'taken'"),
    "a job and the last": (["describe", "taken", "--last"], 2, "JOB is 'taken', but --last selects a job too; remove one of them"),
    "a job to delete that does not exist": (["rm", "nowhere"], 1, "no training job named 'nowhere'"),
    "a rerun with its own name": (["rerun", "taken", "--job-name", "taken"], 2, "use another name (--job-name)"),
    "a metric that was not defined": (["metrics", "taken", "loss"], 2, "--metric 'loss=loss=([0-9.]+)'"),
    "a log's last lines": (["logs", "taken", "-n", "5"], 2, "No such option '-n'; write --tail N"),
    "a picture without an ending": (["metrics", "taken", "--plot", "loss"], 2, "write loss.png"),
    "no job to delete": (["rm"], 2, "name each JOB, with --force if it still runs, or write --older-than AGE"),
    "the last job, to delete": (["rm", "--last"], 2, "; write scriptmode rm [OPTIONS] [JOB...]"),
    "a profile for a job here": (["run", "train.py", "--profile", "nope"], 2, "profile (nope) could not be found"),
    "a profile": (["list", "--platform", "sagemaker", "--region", "us-east-1", "--profile", "nope"], 2, "(--profile)"),
}  # fmt: skip


CASES = {name: (["run", "train.py", *words], 2, message) for name, (words, message) in RUN.items()} | OTHERS


@pytest.mark.parametrize(("words", "code", "message"), CASES.values(), ids=CASES)
def test_a_wrong_word_exits_with_2_and_an_unknown_job_with_1_and_nothing_is_started(words, code, message):
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    error, *reference = done.stderr.splitlines()
    assert error.startswith("scriptmode: ")
    assert not reference or (len(reference) == 1 and reference[0].startswith("see scriptmode"))
    assert [job["TrainingJobName"] for job in TrainingJob.list("local")] == ["taken"]
    assert {path.name for path in Path().iterdir()} == {"data", "empty", *(name.partition("/")[0] for name in FILES)}


def test_an_option_of_an_advice_stands_apart_from_its_value():
    written = r"--image-uri 'a', --image-uri or --image-uri for AWS's"
    with pytest.raises(SpecError, match=written), translate_errors_to_options({"image_uri": "--image-uri"}):
        raise SpecError("x", "image_uri='a', image_uri=... or image_uri= for AWS's", argument="image_uri")
