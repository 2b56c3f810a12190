"""The exit codes of wrong inputs: 2 where the caller's input is wrong before anything starts, over all verbs."""

from pathlib import Path

import pytest
from fakes.command_line import invoke

from scriptmode import Estimator, TrainingJob

ARN = "arn:aws:iam::123456789012:role/r"
CLOUD = ("--instance-type", "ml.m5.large", "--role", ARN, "--image-uri", "i")
FILES = {
    "train.py": "print('loss=0.5')",
    "notebook.ipynb": "{}",
    "full/a": "1",
    "list.yaml": "- a",
    "empty.yaml": "",
    "bad.yaml": "a: [",
    "bad.toml": "a = = 1",
    "typo.toml": "instance_cuont = 2",
    "inputs.toml": 'entry_point = "train.py"\n[inputs]\ntrain = "nowhere"',
    "type.yaml": "instance_count: two",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with files, and a data directory with one job."""
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
    "an input that is missing": (["--input", "train=nowhere"], "there is no file or directory"),
    "an input with nothing in it": (["--input", "train=empty"], "there is nothing in it; put files into it"),
    "an input of the web": (["--input", "train=https://x/y"], "reads s3:// and file:// URIs (--input)"),
    "an input of Google": (["--input", "train=gs://x/y"], "Google Cloud Storage"),
    "an input of another scheme": (["--input", "train=ftp://x/y"], "with the scheme 'ftp'; give an s3:// URI or a path"),
    "an input without a bucket": (["--input", "train=s3://"], "names no bucket"),
    "an input without its channel": (["--input", "full"], "write --input train=full"),
    "an input without a value": (["--input", "train"], "does not have the form NAME=VALUE"),
    "an input with an empty value": (["--input", "train="], "does not name a directory"),
    "an input without a name": (["--input", "=full"], "does not have the form NAME=VALUE"),
    "an input twice": (["--input", "a=full", "--input", "a=full"], "is given twice"),
    "a channel's name": (["--input", "a b=full"], "channel name 'a b'"),
    "a metric that does not compile": (["--metric", "loss=("], "is wrong at character 1, '(': missing )"),
    "a metric without a group": (["--metric", "loss=loss="], "put the number into parentheses"),
    "a metric without a regex": (["--metric", "loss="], "Regex has 0 characters"),
    "a metric without a name": (["--metric", "loss"], "does not have the form NAME=VALUE"),
    "a distribution in capitals": (["--distribution", "MPI"], "did you mean 'mpi'?"),
    "a type with a typo": (["--instance-type", "local_proces"], "did you mean 'local_process'?"),
    "an hour": (["--max-run", "1h"], "write 3600, the seconds of 1h"),
    "no host": (["--instance-count", "0"], "'0' is not a whole number of at least 1"),
    "hosts as a word": (["--instance-count", "two"], "'two' is not a whole number"),
    "5,000 hosts": (["--instance-count", "5000"], "5,000 hosts are more than this machine has ports for; use at most"),
    "a type of nowhere": (["--instance-type", "ml.foo"], "instance_type 'ml.foo' is neither"),
    "a type of EC2": (["--instance-type", "m5.large"], "did you mean 'ml.m5.large'?"),
    "SageMaker without an image": (["--instance-type", "ml.m5.large"], "image_uri is missing"),
    "SageMaker without a Region": ([*CLOUD], "no AWS region is set"),
    "SageMaker with a directory": ([*CLOUD, "--input", "train=full"], "is not in S3, which Amazon SageMaker needs"),
    "Horovod": (["--distribution", "horovod"], "--distribution is 'horovod'; use mpi"),
    "another distribution": (["--distribution", "ring"], "use one of mpi, multi-worker-mirrored, parameter-server"),
    "ranks without MPI": (["--processes-per-host", "2"], "add --distribution"),
    "no rank": (["--distribution", "mpi", "--processes-per-host", "0"], "is not a whole number of at least 1"),
    "a name that is taken": (["--job-name", "taken"], "use another name (--job-name)"),
    "a name with a blank": (["--job-name", "a b"], "write 'a-b'"),
    "an empty name": (["--job-name", ""], "--job-name is empty"),
    "output in the web": (["--output-path", "https://x/y"], "reads s3:// and file:// URIs (--output-path)"),
    "output that cannot be written": (["--output-path", "/proc/x"], "output_path '/proc/x' cannot be written"),
    "output in a file": (["--output-path", "train.py"], "File exists; name another folder (--output-path)"),
    "checkpoints that cannot be written": (["--checkpoint-s3-uri", "/proc/x"], "checkpoint_s3_uri '/proc/x' cannot be"),
    "an input mode": (["--input-mode", "Fast"], "did you mean 'FastFile'?"),
    "a setting of another type": (["--set", "max_wait=abc"], "write a whole number, such as max_wait=2"),
    "a setting that is not one": (["--set", "nope=1"], "there is no argument 'nope'"),
    "a setting without its pair": (["--set", "max_wait=7200"], "add use_spot_instances=True"),
    "a negative limit": (["--set", "max_run=-1"], "max_run is -1"),
    "no time": (["--max-run", "0"], "is not a whole number of at least 1"),
    "a platform without a type": (["--platform", "sagemaker"], "--instance-type is missing"),
    "another platform": (["--platform", "azure"], "'azure' is not one of 'local', 'sagemaker'"),
    "an option": (["--foo"], "no such option '--foo'; write arguments of the script after --"),
    "an option with a typo": (["--inptu", "a=b"], "did you mean '--input'? Otherwise write arguments of the script"),
    "a word": (["full"], "unexpected argument 'full'; write arguments of the script after --"),
    "an option without its value": (["--input"], "--input needs a value; write --input VALUE"),
    "a version": (["--framework-version", "1.2"], "framework_version is '1.2'"),
    "a source directory that is missing": (["--source-dir", "nowhere"], "source_dir 'nowhere' does not exist"),
    "a source directory without the program": (["--source-dir", "full"], "entry_point 'train.py' is not in source_dir"),
    "a dependency that is missing": (["--dependency", "nowhere"], "dependency 'nowhere' does not exist"),
    "a variable": (["--env", "X"], "does not have the form NAME=VALUE"),
    "a tag of AWS": (["--tag", "aws:x=1"], "are AWS's own"),
    "a hyperparameter without a value": (["-p", "x"], "does not have the form NAME=VALUE"),
    "a repository": (["--set", 'git_config={"repo": "nope"}'], "git_config['repo'] is 'nope'"),
}  # fmt: skip
#: All other words, the exit code, and what the error says.
OTHERS = {
    "no program": (["run"], 2, "entry_point is missing"),
    "a program that is missing": (["run", "wrds.py"], 2, "correct it (PROGRAM)"),
    "a program with a typo": (["run", "trian.py"], 2, "did you mean 'train.py'?"),
    "a directory as the program": (["run", "full"], 2, "name the file that is to be run"),
    "a notebook as the program": (["run", "notebook.ipynb"], 2, "jupyter nbconvert --to script notebook.ipynb"),
    "a file that is missing": (["run", "--file", "nowhere.toml"], 2, "cannot be read: No such file"),
    "a file of another kind": (["run", "--file", "train.py"], 2, "rename it to end in .toml"),
    "a directory as the file": (["run", "--file", "full"], 2, "Is a directory"),
    "YAML that is broken": (["run", "--file", "bad.yaml"], 2, "is not valid YAML"),
    "TOML that is broken": (["run", "--file", "bad.toml"], 2, "is not valid TOML"),
    "YAML that is empty": (["run", "--file", "empty.yaml"], 2, "empty.yaml is empty"),
    "a list as the file": (["run", "--file", "list.yaml"], 2, "write names and values"),
    "a key with a typo": (["run", "--file", "typo.toml"], 2, "did you mean 'instance_count'?"),
    "a file's value": (["run", "--file", "type.yaml"], 2, "write a whole number, such as instance_count: 2"),
    "a file's input": (["run", "--file", "inputs.toml"], 2, "there is no file or directory"),
    "a plan's input": (["plan", "train.py", "--input", "train=empty"], 2, "there is nothing in it"),
    "a plan's name": (["plan", "train.py", "--job-name", "taken"], 2, "use another name (--job-name)"),
    "a plan without a Region": (["plan", "train.py", *CLOUD], 2, "no AWS region is set"),
    "a plan against no job": (["plan", "train.py", "--against", "nowhere"], 1, "no training job named 'nowhere'"),
    "a program as the verb": (["train.py"], 2, "to start a program, write scriptmode run train.py"),
    "a job in capitals": (["describe", "Taken"], 1, "did you mean 'taken'?"),
    "a verb": (["runn", "train.py"], 2, "did you mean 'run'?"),
    "a list of nothing": (["list", "--limit", "0"], 2, "is not a whole number of at least 1"),
    "a list of a status": (["list", "--status", "Done"], 2, "'Done' is not one of"),
    "a list without a Region": (["list", "--platform", "sagemaker"], 2, "no AWS region is set"),
    "no job": (["describe"], 2, "JOB is missing"),
    "a job and the last": (["describe", "taken", "--last"], 2, "remove one of them"),
    "a job that does not exist": (["describe", "takn"], 1, "did you mean 'taken'?"),
    "a log of no job": (["logs", "nowhere"], 1, "no training job named 'nowhere'"),
    "a log of no host": (["logs", "taken", "--host", "algo-9"], 2, "it has algo-1"),
    "a log's tail": (["logs", "taken", "--tail", "-1"], 2, "is not a whole number of at least 0"),
    "no job to stop": (["stop"], 2, "JOB is missing"),
    "a job to delete that does not exist": (["rm", "nowhere"], 1, "no training job named 'nowhere'"),
    "a rerun without hosts": (["rerun", "taken", "--instance-count", "0"], 2, "is not a whole number of at least 1"),
    "a rerun with its own name": (["rerun", "taken", "--job-name", "taken"], 2, "use another name (--job-name)"),
    "a rerun with 5,000 hosts": (["rerun", "taken", "--instance-count", "5000"], 2, "use at most"),
    "a metric that was not defined": (["metrics", "taken", "loss"], 2, "--metric 'loss=loss=([0-9.]+)'"),
    "a model of no job": (["model", "download", "nowhere", "x"], 1, "no training job named 'nowhere'"),
    "a package of Cloud ML Engine": (["jobs", "submit", "training", "j", "--module-name", "x"], 2, "--package-path"),
    "a job of Cloud ML Engine": (["jobs", "describe", "nowhere"], 1, "no training job named 'nowhere'"),
    "an option of an image": (["image", "build", "--foo"], 2, "no such option '--foo'"),
    "an option of doctor": (["doctor", "--foo"], 2, "no such option '--foo'; use one of --help,"),
    "a log's last lines": (["logs", "taken", "-n", "5"], 2, "no such option '-n'; use one of --follow, --help, --host"),
    "a log's age": (["logs", "taken", "--since", "1h"], 2, "no such option '--since'; use one of --follow"),
    "an age": (["prune"], 2, "--older-than is missing; write for example: scriptmode prune --older-than 7d"),
    "no job to delete": (["rm"], 2, "JOB... is missing; write for example: scriptmode rm mnist-1 mnist-2"),
    "two jobs to describe": (["describe", "taken", "x"], 2, "unexpected argument 'x'; write for example: scriptmode desc"),
    "no jobs to compare": (["compare"], 2, "JOB JOB... is missing; write for example: scriptmode compare mnist-1"),
    "one job to compare": (["compare", "taken"], 2, "'taken' alone is named, but a comparison needs two jobs; name"),
    "no path to copy": (["cp"], 2, "JOB:PATH is missing; write for example: scriptmode cp mnist-1:model ."),
    "no module": (["jobs", "submit", "training", "j", "--package-path", "full"], 2, "--module-name"),
    "a profile": (["list", "--platform", "sagemaker", "--region", "us-east-1", "--profile", "nope"], 2, "(--profile)"),
    "a shell": (["completion", "tcsh"], 2, "'tcsh' is not one of"),
    "no shell": (["completion"], 2, "is missing; write one of bash, zsh, fish"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), RUN.values(), ids=list(RUN))
def test_a_wrong_option_of_run_exits_with_2_and_starts_nothing(words, message):
    done = invoke("run", "train.py", *words)
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr
    assert [job["TrainingJobName"] for job in TrainingJob.list("local")] == ["taken"]


@pytest.mark.parametrize(("words", "code", "message"), OTHERS.values(), ids=list(OTHERS))
def test_a_wrong_word_exits_with_2_and_an_unknown_job_with_1(words, code, message):
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    assert [job["TrainingJobName"] for job in TrainingJob.list("local")] == ["taken"]
    assert sorted(Path().iterdir()) == sorted(
        {Path("data"), Path("empty"), *(Path(Path(name).parts[0]) for name in FILES)}
    )
