"""The command line itself: help, usage errors, exit codes, and how it prints values and jobs. No job is started here."""

import inspect
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import click
import pytest
from docs.documents import DOCS
from fakes.command_line import PROGRAM, invoke
from fakes.sagemaker_jobs import started

from scriptmode import Failure, JobNotFoundError, RequestError, SpecError, TrainingJobFailed, TrainingJobStopped
from scriptmode._core.request.parse import parse_description
from scriptmode.testing import Life
from scriptmode_cli import SECTIONS, scriptmode
from scriptmode_cli._commands.stacks import stacks
from scriptmode_cli._options.options import account_options
from scriptmode_cli._options.values import parse_number_or_text
from scriptmode_cli._program.description_text import render_description
from scriptmode_cli._program.error_reporting import exit_code
from scriptmode_cli._program.output import to_json_value

pytestmark = pytest.mark.usefixtures("no_settings", "own_directory")


def commands(command=scriptmode, path=()):
    """Every command, however deep, by its words."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands(command.get_command(click.Context(command), name), (*path, name))


COMMANDS = dict(commands())


def test_stacks_of_a_host_without_processes_say_so_and_what_amazon_sagemaker_lacks_is_refused(capsys):
    job = SimpleNamespace(name="j", hosts=["algo-1"], platform=SimpleNamespace(stacks=lambda _: {"algo-1": ""}))
    inspect.unwrap(stacks.callback)(job, as_json=False)
    assert capsys.readouterr().out == "algo-1 | no processes\n"
    with pytest.raises(SpecError, match="of this machine; look at the log: scriptmode logs -f job-1"):
        started(Life.completed())[1].platform.stacks("job-1")
    with pytest.raises(SpecError, match="job-1 cannot be stopped now: Amazon SageMaker's API has no such stop; "):
        started(Life.completed())[1].stop(now=True)


def test_without_arguments_the_command_prints_its_help_and_succeeds():
    done = invoke()
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == invoke("--help").stdout
    for verb in scriptmode.verbs:
        assert done.stdout.count(f"\n  {verb} ") == 1
    assert re.findall(r"^(\w.*):$", done.stdout, re.MULTILINE) == ["Options", *SECTIONS]
    assert "Slurm" in done.stdout


@pytest.mark.parametrize("verb", scriptmode.verbs)
def test_a_verb_is_listed_with_the_first_sentence_of_its_help_and_in_the_guide(verb):
    text = inspect.getdoc(scriptmode.get_command(None, verb).callback)
    first = " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
    assert first == scriptmode.verbs[verb].rstrip(".")
    table = re.findall(r"^\| (`.*?) \|", (DOCS / "guides" / "command_line.md").read_text(), re.MULTILINE)
    assert any(f"`{verb}`" in row or f"`{verb} " in row for row in table), "add a row to guides/command_line.md"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "scriptmode")
def test_every_help_shows_an_example(words):
    done = invoke(*words, "--help")
    assert done.exit_code == 0
    assert "Example" in done.stdout
    assert " ".join(("scriptmode", *words)) in done.stdout.partition("Example")[2]


def test_every_verb_has_the_option_json():
    without = [
        words
        for words, command in COMMANDS.items()
        if not isinstance(command, click.Group) and not any("--json" in option.opts for option in command.params)
    ]
    assert without == []


def test_the_help_imports_no_verb_and_no_job_code():
    code = "from scriptmode_cli import scriptmode; scriptmode.main(['--help'], standalone_mode=False)"
    loaded = "print(sorted(name for name in sys.modules if name.startswith('scriptmode')))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{loaded}"], check=True, capture_output=True, text=True, timeout=600
    )
    names = ["", ".errors", "_cli", "_cli._program", "_cli._program.group"]
    assert done.stdout.splitlines()[-1] == str([f"scriptmode{name}" for name in names])


USAGE = {
    "a verb misspelled": (["lsit"], "there is no command 'scriptmode lsit'; did you mean 'list'?", "scriptmode"),
    "another word": (["frobnicate"], "use one of describe, doctor", "scriptmode"),
    "a status misspelled": (["list", "--status", "faild"], "for '--status': 'faild' is not one of ", "scriptmode list"),
    "a time": (["list", "--since", "today"], "'today' is neither an age nor a time; write for example 30min, 1h, 7d, 2026-01-31 or", "scriptmode list"),
    "an age before all dates": (["list", "--since", "999999w"], "'999999w' is neither an age nor a time", "scriptmode list"),
    "a secret twice": (["plan", "x.py", "--env", "K=b", "--env", "K=c"], "--env K is given twice; remove one of them", "scriptmode plan"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message", "path"), USAGE.values(), ids=list(USAGE))
def test_a_usage_error_is_one_sentence_and_a_reference_to_the_help(words, message, path):
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    said, see = done.stderr.splitlines()
    assert said.startswith("scriptmode: ")
    assert message in said
    assert see == f"see {path} --help"
    as_json = json.loads(invoke(*words, "--json").stderr)
    assert as_json["exit_code"] == 2


@pytest.mark.parametrize("words", ["{}", "describe {}", "run {}", "list --status {}", "list --{}", "run t.py --env {}"])
def test_no_error_repeats_a_value_of_thousands_of_characters(words):
    done = invoke(*words.format("x" * 3000).split())
    assert done.exit_code
    assert len(done.stderr) < 700


def test_last_without_any_job_is_an_error():
    done = invoke("logs", "--last")
    folder = os.environ["SCRIPTMODE_DATA_DIR"]
    why = f"there are no training jobs on this machine, in {folder!r} (SCRIPTMODE_DATA_DIR), which does not exist; start one with scriptmode run"
    assert (done.exit_code, done.stderr) == (1, f"scriptmode: --last: {why}\n")


def test_with_json_an_error_is_one_json_object():
    done = invoke("describe", "nowhere", "--json")
    (said,) = map(json.loads, done.stderr.splitlines())
    assert said["error"].endswith("Error")
    assert "no training job named 'nowhere'" in said["message"]
    assert (said["exit_code"], done.exit_code, done.stdout) == (1, 1, "")


@pytest.mark.parametrize("platform", [[], ["--platform", "local"]], ids=["anywhere", "here"])
def test_the_error_for_an_unknown_job_lists_few_names(platform, tmp_path):
    for number in range(1000):
        folder = tmp_path / "data" / "jobs" / f"other-{number}"
        folder.mkdir(parents=True)
    said = invoke("describe", "nowhere", *platform).stderr
    assert "no training job named 'nowhere'" in said
    assert said.count("other-") <= 5


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('"$0" list --json > /dev/full', 1, "cannot be written: No space left on device"),
        ('"$0" --help > /dev/full', 1, "cannot be written: No space left on device"),
        ('"$0" list >&-', 0, "no training jobs"),
        ('"$0" list --json >&-', 0, ""),
        ('rmdir "$PWD" && "$0" plan train.py', 1, "the current directory does not exist any more"),
    ],
    ids=["full", "help", "closed", "closed json", "folder"],
)
def test_an_error_of_the_operating_system_is_one_line(tmp_path, line, code, said):
    (tmp_path / "folder").mkdir()
    command = ["sh", "-c", line, PROGRAM]
    done = subprocess.run(command, cwd=tmp_path / "folder", check=False, stderr=subprocess.PIPE, text=True, timeout=600)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1 if said else 0), done.stderr
    assert said in done.stderr


def failed(reason):
    return TrainingJobFailed("...", {"TrainingJobName": "j", "TrainingJobStatus": "Failed", "FailureReason": reason})


def stopped(secondary):
    return TrainingJobStopped("...", {"TrainingJobStatus": "Stopped", "SecondaryStatus": secondary})


ENDINGS = [
    (failed("AlgorithmError: algo-1, script: exit code 3\nValueError, exit code: 3"), 3),
    (failed("AlgorithmError: exit code: 3 is what it said, then the machine was lost"), 1),
    (failed("AlgorithmError: x, exit code: 999"), 1), (stopped("Stopped"), 143),
    (stopped("MaxRuntimeExceeded"), 124), (JobNotFoundError("no"), 1), (RequestError("no"), 2),
    (click.UsageError("no"), 2),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code"), ENDINGS, ids=[f"{type(error).__name__} {code}" for error, code in ENDINGS])
def test_the_exit_code_is_the_jobs_own(error, code):
    assert exit_code(error) == code


@mock.patch.dict(os.environ)
def test_a_region_and_a_profile_win_over_keys_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another account's")
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "another one, which botocore looks at first")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config := tmp_path / "config"))
    config.write_text("[profile team]\n")
    seen = {}
    wanted = {**dict.fromkeys(("AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID")), "AWS_PROFILE": "team", "AWS_DEFAULT_REGION": "eu-west-1"}  # fmt: skip

    @click.command()
    @click.pass_context
    def look(context):
        seen.update({name: os.environ.get(name) for name in wanted})

    account_options(look).main(["--profile", "team", "--region", "eu-west-1"], standalone_mode=False)
    assert seen == wanted


MOMENT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def test_every_value_is_converted_to_json():
    values = {1: MOMENT, "a": (float("-inf"), 2.5, None, True), "path": Path("/x"), "a broken letter": "\udce9"}
    assert json.dumps(to_json_value(values), allow_nan=False) == (
        '{"1": "2026-01-31T12:00:00+00:00", "a": ["-Infinity", 2.5, null, true], "path": "/x", '
        '"a broken letter": "\\udce9"}'
    )


@pytest.mark.parametrize(
    ("typed", "given"),
    [("5", 5), ("-0.5", -0.5), ("1e-3", "1e-3"), ("007", "007"), ("true", "true"), ("[1]", "[1]"), ("", ""), ("nan", "nan"), ("1_000", "1_000")],
)  # fmt: skip
def test_a_word_is_a_number_only_if_python_prints_it_the_same(typed, given):
    found = parse_number_or_text(typed)
    assert (found, type(found)) == (given, type(given))


EFS = {"FileSystemType": "EFS", "FileSystemId": "fs-1", "DirectoryPath": "/x"}
DESCRIPTION = {
    "TrainingJobName": "mnist-1", "TrainingJobStatus": "Failed", "SecondaryStatus": "Failed", "CreationTime": MOMENT,
    "TrainingTimeInSeconds": 61, "FailureReason": "AlgorithmError: algo-1\nValueError, exit code: 1",
    "HyperParameters": {
        "sagemaker_program": '"train.py"', "sagemaker_submit_directory": '"s3://b/sourcedir.tar.gz"',
        "sagemaker_parameter_server_enabled": "true", "text": '"a b"', "rate": "0.1",
    },
    "AlgorithmSpecification": {"TrainingImage": "img:1"},
    "ResourceConfig": {"InstanceGroups": [
        {"InstanceGroupName": "lead", "InstanceType": "ml.m5.large", "InstanceCount": 1},
        {"InstanceGroupName": "memory", "InstanceType": "ml.r5.large", "InstanceCount": 2},
    ]},
    "InputDataConfig": [
        {"ChannelName": "a", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/a"}}, "InputMode": "Pipe"},
        {"ChannelName": "b", "DataSource": {"FileSystemDataSource": EFS}},
    ],
    "Environment": {"TOKEN": "hidden"}, "CheckpointConfig": {"S3Uri": "s3://out/c"},
    "OutputDataConfig": {"S3OutputPath": "s3://out"}, "ModelArtifacts": {"S3ModelArtifacts": ""},
}  # fmt: skip
TEXT = f"""
job              mnist-1
status           Failed, 1 min 1 s of training
created          {MOMENT.astimezone().isoformat(" ")}
failed           AlgorithmError: algo-1
                 ValueError, exit code: 1
hosts            lead: 1 x ml.m5.large, memory: 2 x ml.r5.large, parameter servers
script           train.py from s3://b/sourcedir.tar.gz
image            img:1
inputs           a = s3://b/a (Pipe)
                 b = EFS fs-1:/x
hyperparameters  text = a b
                 rate = 0.1
environment      TOKEN
checkpoints      s3://out/c
output           s3://out
"""


def rendered(description):
    return render_description(parse_description(description))


def test_the_summary_of_a_job_omits_the_values_of_environment_variables():
    assert rendered(DESCRIPTION) == TEXT.strip()


def test_the_summary_of_a_servers_job_says_that_its_paths_are_not_of_this_machine(tmp_path):
    uri = tmp_path.as_uri()
    of_server = {**DESCRIPTION, "CheckpointConfig": {"S3Uri": uri}}
    here = rendered({**of_server, "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1}})
    assert f"checkpoints      {uri}" in here.splitlines()
    told = "server           has its own file:// paths: those below are not of this machine"
    assert {told, f"checkpoints      {uri}"} < {*rendered(of_server).splitlines()}
    of_script = {**DESCRIPTION["HyperParameters"], "init_method": '"file:///x"'}
    assert told not in here + rendered({**DESCRIPTION, "HyperParameters": of_script})


@pytest.mark.parametrize(
    ("statuses", "left"),
    [
        (["Starting"], "3 of 3 left"),
        (["Starting", "Training", "Interrupted", "Starting", "Training"], "2 of 3 left"),
        (["Starting", "Training", "Completed"], ""),
    ],
)
def test_the_summary_of_a_job_with_retries_has_how_many_are_left(statuses, left):
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    given = {
        "TrainingJobStatus": "Completed" if "Completed" in statuses else "InProgress",
        "RetryStrategy": {"MaximumRetryAttempts": 3},
        "SecondaryStatusTransitions": [{"Status": each, "StartTime": moment} for each in statuses],
    }
    lines = [line.split(maxsplit=1) for line in rendered({**DESCRIPTION, **given}).splitlines()]
    assert dict(line for line in lines if len(line) > 1).get("retries", "") == left


def test_the_summary_of_a_failed_job_has_the_error_the_hint_and_the_log():
    trace = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    failure = Failure("algo-2, script: exit code 1", host="algo-2", hint="do this", traceback=trace)
    lines = render_description(parse_description(DESCRIPTION), failure=failure).splitlines()
    begin = lines.index("failed           algo-2, script: exit code 1")
    assert [line[17:] for line in lines[begin + 1 : begin + 6]] == [
        '  File "train.py", line 1, in <module>', "    f()", "KeyError: 1", "do this",
        "scriptmode logs mnist-1 --host algo-2",
    ]  # fmt: skip
    rank = Failure("it ended", host="algo-2", process="rank 1", traceback="words of another launcher")
    text = render_description(parse_description(DESCRIPTION), failure=rank)
    assert "words of another launcher" in text
    assert "--host" not in text


def test_the_summary_masks_secrets_and_escapes_control_characters():
    given = {
        "password": '"hunter2222"', "api": '{"rate": 1, "token": "hunter2222"}', "pin_password": "1234",
        "title": r'"a\u001b[2Jb\nforged = 1"', "max_tokens": "5", "store": '"redis://me:hunter@host/0"',
    }  # fmt: skip
    said = rendered({**DESCRIPTION, "HyperParameters": given, "FailureReason": "a\x1b]0;x\x07b"})
    assert "hunter" not in said
    assert "1234" not in said
    assert {line.strip() for line in said.splitlines()} >= {
        "hyperparameters  password = ******", 'api = {"rate": 1, "token": "******"}', "pin_password = ******",
        r"title = a\u001b[2Jb\nforged = 1", "max_tokens = 5", "store = redis://******@host/0",
        r"failed           a\u001b]0;x\u0007b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "message", "shown"),
    [
        ("Starting", "", False), ("Starting", "Launching", True), ("Stopped", "Training job stopped", False),
        ("Stopped", "cancelled by the user ada", True),
    ],
)  # fmt: skip
def test_the_summary_has_the_message_of_a_status_that_says_more_than_the_status(status, message, shown):
    _, job = started(Life.completed())
    description = {**job.describe(), "SecondaryStatus": status}
    description["TrainingJobStatus"] = "Stopped" if status == "Stopped" else "InProgress"
    description["SecondaryStatusTransitions"] = [{"Status": status, "StatusMessage": message}]
    assert (f"\nmessage  {message}\n" in rendered(description), "message" in rendered(description)) == (shown, shown)


@pytest.mark.tf
@pytest.mark.mpi
def test_horovod_is_installed_from_the_wheel_of_this_tensorflow_and_open_mpi(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_TARGET", str(tmp_path))
    subprocess.run((sys.executable, "-m", "scriptmode", "horovod", "install"), check=True, timeout=600)
    assert [*(tmp_path / "horovod" / "tensorflow").glob("mpi_lib*.so")]


@pytest.mark.tf
@pytest.mark.mpi
def test_the_reason_why_horovod_cannot_be_built_is_in_the_json():
    command = (sys.executable, "-m", "scriptmode", "horovod", "install", "--json")
    environment = {**os.environ, "XDG_CACHE_HOME": os.devnull}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=600)
    message = json.loads(done.stderr)["message"]
    assert (done.returncode, message.partition(": ")[0]) == (1, "Horovod cannot be built")
    assert "Not a directory" in message


def test_a_name_that_this_machine_lacks_is_not_asked_of_aws_without_credentials(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    stderr = invoke("logs", "nowhere").stderr
    assert "(Amazon SageMaker was not asked, because no AWS credentials are set); the data directory" in stderr
