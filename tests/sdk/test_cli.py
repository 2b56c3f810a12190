"""The command line itself: help, suggestions, usage errors, exit codes. No job is started here."""

import json
import os
import subprocess
import sys

import click
import pytest
from fakes.command_line import PROGRAM, documents, invoke

from scriptmode import JobNotFoundError, RequestError, TrainingJobFailed, TrainingJobStopped, TransientError
from scriptmode.cli import SYNONYMS, VERBS, scriptmode
from scriptmode.cli.error_reporting import exit_code


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def commands(command=scriptmode, path=()):
    """Every command, however deep, by its words."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands(command.get_command(click.Context(command), name), (*path, name))


COMMANDS = dict(commands())


def test_without_arguments_the_command_prints_its_help_and_succeeds():
    done = invoke()
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == invoke("--help").stdout
    for verb in VERBS:
        assert f"\n  {verb} " in done.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "scriptmode")
def test_every_help_shows_an_example(words):
    done = invoke(*words, "--help")
    assert done.exit_code == 0
    assert "Example" in done.stdout
    assert " ".join(("scriptmode", *words)) in done.stdout.partition("Example")[2]


@pytest.mark.parametrize("verb", VERBS)
def test_the_summary_of_a_verb_is_the_first_sentence_of_its_help(verb):
    assert " ".join(COMMANDS[(verb,)].help.split()).startswith(VERBS[verb].help.rstrip("."))


@pytest.mark.parametrize("words", [words for words, command in COMMANDS.items() if not isinstance(command, click.Group)], ids=" ".join)  # fmt: skip
def test_every_verb_but_completion_has_the_option_json(words):
    options = {option for parameter in COMMANDS[words].params for option in parameter.opts}
    assert ("--json" in options) == (words not in {("completion",), ("exec",)})


def test_the_help_imports_no_verb_and_no_job_code():
    code = "from scriptmode.cli import scriptmode; scriptmode.main(['--help'], standalone_mode=False)"
    loaded = "print(sorted(name for name in sys.modules if name.startswith('scriptmode')))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{loaded}"], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == str(
        ["scriptmode", "scriptmode.cli", "scriptmode.cli.group", "scriptmode.errors", "scriptmode.messages"]
    )


@pytest.mark.parametrize("group", [["jobs"], ["image"]], ids=" ".join)
def test_the_help_of_a_group_shows_whole_sentences(group):
    assert "..." not in invoke(*group, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize(("word", "verb"), SYNONYMS.items(), ids=list(SYNONYMS))
def test_a_synonym_is_the_verb_but_is_not_listed(word, verb):
    assert invoke(word, "--help").stdout == invoke(verb, "--help").stdout
    assert invoke("help", word).stdout == invoke(verb, "--help").stdout
    assert f"\n  {word} " not in invoke().stdout


@pytest.mark.parametrize("words", [["help"], ["help", "help"]], ids=" ".join)
def test_help_alone_is_the_help_of_the_command(words):
    assert invoke(*words).stdout == invoke("--help").stdout


def test_help_of_a_verb_within_a_group_is_that_verbs():
    assert invoke("help", "jobs", "submit").stdout == invoke("jobs", "submit", "--help").stdout


def test_the_package_runs_as_the_command():
    done = subprocess.run([sys.executable, "-m", "scriptmode", "ls", "--json"], check=True, capture_output=True, text=True, timeout=60)  # fmt: skip
    assert json.loads(done.stdout) == []


USAGE = {
    "a verb misspelled": (["lsit"], "there is no command 'scriptmode lsit'; did you mean 'list'?", "scriptmode"),
    "a synonym misspelled": (["statsu"], "there is no command 'scriptmode statsu'; did you mean 'status'?", "scriptmode"),
    "another word": (["frobnicate"], "use one of attach, comp", "scriptmode"),
    "a synonym without a job": (["cancel"], "JOB is missing", "scriptmode stop"),
    "help of nothing": (["help", "lsit"], "did you mean 'list'?", "scriptmode"),
    "a verb of a group": (["model", "dowload"], "no command 'scriptmode model dowload'; did you mean 'download'?", "scriptmode model"),
    "an option misspelled": (["logs", "--fllow", "x"], "--follow", "scriptmode logs"),
    "no job": (["describe"], "JOB is missing; name a job, or add --last for the newest one", "scriptmode describe"),
    "a job and the last": (["stop", "a", "--last"], "JOB is 'a', but --last selects a job too; remove one of them", "scriptmode stop"),
    "a status": (["list", "--status", "Done"], "'Done' is not one of", "scriptmode list"),
    "a platform": (["list", "--platform", "azure"], "'azure' is not one of 'local', 'sagemaker'", "scriptmode list"),
    "a time": (["list", "--since", "today"], "'today' is neither an age nor a time; write for example 30min, 1h, 7d, 2026-01-31 or", "scriptmode list"),
    "an age before all dates": (["list", "--since", "999999w"], "'999999w' is neither an age nor a time", "scriptmode list"),
    "a count": (["run", "x.py", "--instance-count", "0"], "'0' is not a whole number of at least 1", "scriptmode run"),
    "no dashes": (["run", "x.py", "--epochs", "5"], "write arguments of the script after --", "scriptmode run"),
    "a pair": (["run", "x.py", "-p", "epochs"], "-p 'epochs' does not have the form NAME=VALUE; write -p epochs=5", "scriptmode run"),
    "an empty name": (["run", "x.py", "--job-name", ""], "--job-name is empty; add a name, or leave", "scriptmode run"),
    "a channel twice": (["plan", "x.py", "--input", "a=b", "--input", "a=c"], "--input a is given twice: 'b' and 'c'", "scriptmode plan"),
    "a secret twice": (["plan", "x.py", "--env", "K=b", "--env", "K=c"], "--env K is given twice; remove one of them", "scriptmode plan"),
    "another shell": (["completion", "tcsh"], "'tcsh' is not one of", "scriptmode completion"),
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


def test_last_without_any_job_is_an_error():
    done = invoke("logs", "--last")
    assert done.exit_code == 1
    assert (
        done.stderr == "scriptmode: --last: there are no training jobs on this machine; start one with scriptmode run\n"
    )


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


def test_with_json_each_of_several_unknown_jobs_is_one_json_object():
    done = invoke("stop", "nowhere", "neither", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, [])
    first, second = documents(done.stderr)
    assert "'nowhere'" in first["message"]
    assert "'neither'" in second["message"]


def test_the_other_stopped_jobs_are_reported_if_the_status_of_one_is_not_known(monkeypatch):
    class Job:
        ended = False

        def __init__(self, name, **_where):
            self.name = name

        def stop(self):
            pass

        @property
        def status(self):
            if self.name == "lost":
                raise TransientError("no answer")
            return "Stopping"

    monkeypatch.setattr("scriptmode.cli.commands.stop.attach_job", Job)
    done = invoke("stop", "first", "lost", "second", "--json")
    assert [each["job"] for each in json.loads(done.stdout)] == ["first", "second"]
    assert (done.exit_code, documents(done.stderr)[0]["message"]) == (1, "no answer")


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
    done = subprocess.run(
        ["sh", "-c", line, PROGRAM], cwd=tmp_path / "folder", check=False, stderr=subprocess.PIPE, text=True, timeout=60
    )
    assert (done.returncode, done.stderr.count("\n")) == (code, 1 if said else 0), done.stderr
    assert said in done.stderr


def test_the_error_for_a_missing_region_names_the_option(tmp_path, no_credentials):
    (tmp_path / "train.py").touch()
    said = invoke("plan", "train.py", "--instance-type", "ml.m5.large", "--role", "r", "--image-uri", "i").stderr
    assert "no AWS region is set; set AWS_DEFAULT_REGION" in said
    assert said.endswith(" (--region)\n")


def ended(status, secondary, reason=""):
    raised = TrainingJobFailed if status == "Failed" else TrainingJobStopped
    description = {
        "TrainingJobName": "j",
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "FailureReason": reason,
    }
    return raised("...", description)


ENDINGS = [
    (ended("Failed", "Failed", "AlgorithmError: algo-1, script: exit code 3\nValueError, exit code: 3"), 3),
    (ended("Failed", "Failed", "AlgorithmError: killed, exit code: 137"), 137),
    (ended("Failed", "Failed", "AlgorithmError: exit code: 3 is what it said, then the machine was lost"), 1),
    (ended("Failed", "Failed", "ClientError: no such bucket"), 1),
    (ended("Failed", "Failed", "AlgorithmError: x, exit code: 999"), 1),
    (ended("Failed", "Failed", "AlgorithmError: x, exit code: 0"), 1),
    (ended("Stopped", "Stopped"), 143),
    (ended("Stopped", "MaxRuntimeExceeded"), 124),
    (ended("Stopped", "MaxWaitTimeExceeded"), 124),
    (JobNotFoundError("no"), 1),
    (RequestError("no"), 2),
    (click.UsageError("no"), 2),
    (click.ClickException("no"), 1),
]


@pytest.mark.parametrize(("error", "code"), ENDINGS, ids=[f"{type(error).__name__} {code}" for error, code in ENDINGS])
def test_the_exit_code_is_the_jobs_own(error, code):
    assert exit_code(error) == code


def test_a_region_and_a_profile_hold_for_one_command_and_win_over_keys_of_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another account's")
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "another one, which botocore looks at first")
    before = dict(os.environ)
    seen = {}
    wanted = {
        "AWS_PROFILE": "team", "AWS_DEFAULT_PROFILE": None, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": None,
    }  # fmt: skip

    @click.command()
    @click.pass_context
    def look(context):
        seen.update({name: os.environ.get(name) for name in wanted})

    from scriptmode.cli.options import account_options

    account_options(look).main(["--profile", "team", "--region", "eu-west-1"], standalone_mode=False)
    assert seen == wanted
    assert dict(os.environ) == before
