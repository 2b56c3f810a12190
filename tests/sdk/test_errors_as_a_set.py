"""Every public error, raised by what a caller does: its text has the thing, the value and the next step."""

import ast
import copy
import pickle
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from fakes.estimators import ROLE
from fakes.processes import until

import scriptmode
from scriptmode import CategoricalParameter, Estimator, TrainingJob, Tuner
from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.testing import FakeSageMaker, Life
from scriptmode.testing.job_life import OUT_OF_CAPACITY
from scriptmode_runtime.processes import process_tree

ERRORS = {
    name for name in scriptmode.__all__ if isinstance(getattr(scriptmode, name), type)
    and issubclass(getattr(scriptmode, name), scriptmode.ScriptmodeError)
}  # fmt: skip
#: What callers catch several kinds by, and those kinds.
BASES = {
    "ScriptmodeError": ERRORS - {"ScriptmodeError"},
    "TrainingJobError": {"TrainingJobFailed", "CapacityError", "TrainingJobStopped"},
}


@dataclass
class Caller:
    """A folder with a script, jobs of this machine and of a fake account."""

    folder: object

    def here(self, script="print('loss=0.5')", **arguments):
        (self.folder / "train.py").write_text(script)
        defaults = {"entry_point": "train.py", "source_dir": str(self.folder), "instance_type": "local_process"}
        return Estimator(**{**defaults, **arguments})

    def there(self, life=None, **arguments):
        fake = FakeSageMaker("eu-west-1")
        fake.buckets["out"] = fake.account
        if life:
            fake.expect(life)
        made = Estimator("img:1", ROLE, 1, "ml.m5.large", output_path="s3://out/x", sagemaker_session=fake, **arguments)
        return fake, made


@dataclass
class Row:
    """How an error is come by, and what its text must have."""

    meet: Callable
    thing: str
    value: str
    next_step: str
    #: The type of the error that it was made of, where there is one.
    cause: str = ""


@pytest.fixture
def caller(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "code").mkdir()
    return Caller(tmp_path / "code")


def a_broken_config_file(caller, monkeypatch):
    file = caller.folder / "config.yaml"
    file.write_text("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {RoleARN: x}}\n")
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(file))
    fake, estimator = caller.there()
    # This machine's file is read.
    fake.sagemaker_config = None
    estimator.fit()


def a_quota(caller, _):
    fake, estimator = caller.there()
    fake.limit("ml.m5.large", 0)
    estimator.fit()


def a_silent_service(caller, _):
    fake, estimator = caller.there()
    fake.disconnect("describe_training_job", times=1000)
    estimator.fit(logs=False)


def a_full_account(caller, _):
    _, estimator = caller.there(Life.failed(OUT_OF_CAPACITY))
    estimator.fit(logs=False)


def no_model_message(caller, _):
    job = caller.here("raise SystemExit(3)").fit(wait=False, job_name="lost")
    with pytest.raises(scriptmode.TrainingJobFailed):
        job.wait(timeout=50)
    job.download_model(caller.folder / "model")


def no_object(caller, _):
    fake, estimator = caller.there()
    fake.buckets["data"] = fake.account
    estimator.platform.fetch("s3://data/modle.tar.gz", caller.folder)


def another_account(caller, _):
    fake, estimator = caller.there()
    fake.buckets[f"sagemaker-eu-west-1-{fake.account}"] = "999999999999"
    estimator.output_path = None
    estimator.fit()


def no_docker(caller, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{caller.folder}/nowhere.sock")
    caller.here(instance_type="local").fit()


def an_empty_state(caller, _):
    job = caller.here().fit(job_name="emptied", logs=False)
    folder = JobFolder(caller.folder.parent / "data" / "jobs" / "emptied")
    # An agent works for a moment after its job ended.
    until(lambda: not process_tree.is_running(folder.read_processes()["agent"]))
    (folder.path / "state.json").write_bytes(b"")
    job.describe()


def twice(caller, _):
    caller.here().fit(job_name="once", logs=False)
    caller.here().fit(job_name="once", logs=False)


def a_fruitless_search(caller, _):
    estimator = caller.here("raise ValueError('no data')", metric_definitions=[{"Name": "loss", "Regex": "loss=(.+)"}])
    Tuner(estimator, "loss", {"lr": CategoricalParameter([1])}, strategy="Grid").fit(job_name="search", logs=False)


def too_long(caller, _):
    caller.here("import time; time.sleep(600)", max_run=1).fit(logs=False)


def no_matplotlib(caller, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    metric = {"Name": "loss", "Regex": "loss=([0-9.]+)"}
    caller.here(metric_definitions=[metric]).fit(logs=False).plot()


def a_timeout(caller, _):
    job = caller.here("import time; time.sleep(600)").fit(wait=False, job_name="slow")
    try:
        job.wait(timeout=0)
    finally:
        job.stop()


def no_s3_credentials(caller, _):
    caller.here().fit("s3://bucket/train")


ROWS = {
    "SpecError": Row(
        lambda caller, _: caller.here(distribution={"mpi": {"enabled": True, "process_per_host": 2}}),
        "distribution['mpi']", "'process_per_host'", "did you mean 'processes_per_host'?",
    ),
    "SourceError": Row(
        lambda caller, _: caller.here(entry_point="trian.py").fit(),
        "entry_point", "'trian.py'", "did you mean 'train.py'?",
    ),
    "ConfigError": Row(a_broken_config_file, "config.yaml", "SageMaker.TrainingJob has no key 'RoleARN'", "did you mean 'RoleArn'?"),
    "PlatformError": Row(
        lambda caller, _: caller.here(platform=LocalPlatform(python="no-such-python")).fit(),
        "program", "'no-such-python'", "correct python=...",
    ),
    "RequestError": Row(
        lambda caller, _: caller.here(metric_definitions=[{"Name": "loss", "Regex": "loss=("}]).fit(),
        "metric 'loss'", "'loss=('", "correct it; an example is",
    ),
    "CredentialsError": Row(no_s3_credentials, "channel 'training'", "s3://bucket/train: there are no AWS credentials", "run 'aws configure'"),
    "QuotaError": Row(a_quota, "ml.m5.large for training job usage", "is 0 Instances", "ask AWS for a higher quota", "ClientError"),
    "TransientError": Row(a_silent_service, "Training job img-", "given up after 900 s", "scriptmode logs -f", "TransientError"),
    "DataError": Row(no_model_message, "training job lost", "is Failed and has no model", "look at its log"),
    "DataNotFoundError": Row(no_object, "s3://data/modle.tar.gz", "there is no such object", "correct the URI"),
    "DataAccessError": Row(another_account, "s3://sagemaker-eu-west-1-123456789012", "access denied", "give output_path", "DataAccessError"),
    "UnreadableJobError": Row(
        an_empty_state, "training job 'emptied'", "state.json: it is empty", "delete it: scriptmode rm emptied", "ValueError"
    ),
    "ContainerError": Row(no_docker, "Docker daemon", "nowhere.sock does not exist", "install Docker and start it", "FileNotFoundError"),
    "JobNotFoundError": Row(
        lambda *_: TrainingJob.attach("nope"),
        "no training job named 'nope'", "Amazon SageMaker was not asked", "AWS_DEFAULT_REGION", "CredentialsError",
    ),
    "JobExistsError": Row(twice, "training job", "'once'", "use another name"),
    "TrainingJobFailed": Row(
        lambda caller, _: caller.here("raise ValueError('no data')").fit(logs=False, job_name="bad"),
        "training job bad failed: algo-1", "ValueError: no data", "scriptmode rerun bad",
    ),
    "CapacityError": Row(a_full_account, "training job img-", "Unable to provision requested ML compute", "try another instance type"),
    "TrainingJobStopped": Row(too_long, "training job training-", "longer than max_run (1 s)", "give it more time"),
    "TuningJobFailed": Row(a_fruitless_search, "tuning job search failed", "ValueError: no data", "see Tuner.attach('search').analytics()"),
    "MissingPackageError": Row(no_matplotlib, "plot()", "Matplotlib, which is not installed", "pip install matplotlib", "ImportError"),
    "WaitTimeoutError": Row(a_timeout, "training job slow", "after 0 s", "wait again or stop it"),
}  # fmt: skip


def test_every_public_error_has_a_row_and_nothing_else_has_one():
    assert set(ROWS) == ERRORS - set(BASES)


@pytest.mark.parametrize("name", ROWS)
def test_an_error_says_the_thing_the_value_and_the_next_step(name, caller, monkeypatch):
    row = ROWS[name]
    with pytest.raises(scriptmode.ScriptmodeError) as raised:
        row.meet(caller, monkeypatch)
    assert type(raised.value).__name__ == name, raised.value
    text = str(raised.value)
    for part in (row.thing, row.value, row.next_step):
        assert part in text, text
    assert not row.cause or any(
        each.__name__ == row.cause for each in type(raised.value.__cause__ or raised.value.__context__).__mro__
    )


@pytest.mark.parametrize("name", BASES)
def test_a_base_is_what_its_kinds_are_caught_by(name):
    kinds = {each for each in ERRORS if issubclass(getattr(scriptmode, each), getattr(scriptmode, name))}
    assert kinds - {name} == BASES[name]


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_can_be_pickled_and_copied(name):
    kind = getattr(scriptmode, name)
    arguments = {
        "UnreadableJobError": ("job", Path("/state.json"), "it is empty"),
        **dict.fromkeys(
            ["TrainingJobError", *BASES["TrainingJobError"], "TuningJobFailed"],
            ("it failed", {"TrainingJobName": "job"}),
        ),
    }.get(name, ("it is wrong",))
    error = kind(*arguments)
    if len(arguments) == 1:
        error = kind("it is wrong", argument="role", advice="give another")
        assert str(error) == "it is wrong; give another"
    for made in (copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, n)) for n in range(6))):
        assert (type(made), str(made), made.args, vars(made)) == (kind, str(error), error.args, vars(error))


def test_a_caller_catches_them_by_pythons_own_kinds_too():
    assert issubclass(scriptmode.SpecError, ValueError)
    assert issubclass(scriptmode.WaitTimeoutError, TimeoutError)
    assert issubclass(scriptmode.MissingPackageError, ImportError)


SDK = Path(scriptmode.__file__).parent
#: What a next step begins with, in a clause of its own.
VERBS = (
    "add|ask|begin|build|call|check|clone|close|copy|correct|create|delete|did|disable|end|free|give|have|indent|install|keep|leave|"
    "let|load|look|make|mend|mount|name|pack|pass|pip|put|reinstall|remove|rename|restore|retry|say|scriptmode|see|set|shorten|start|"
    "stop|store|take|train|try|upgrade|use|wait|write"
)
STEP = re.compile(rf"(?:^|[;:.,] |[;,] or )(?:{VERBS})\b", re.IGNORECASE)
#: What must hold tells what to do, and so does a question.
RULE = re.compile(r"; [^;]*\b(?:must|needs|has|have one|one is|comes)\b|; [^;]+\?$")
#: By what it is worked out.
WORKED_OUT = {
    "did_you_mean", "did_you_mean_path", "_suggest_job", "suggestion", "next_step", "step", "hint", "advice", "install_command", "HOW_TO_GIVE_CREDENTIALS",
    "_LEAVE_ALONE", "_FORM", "_DEFINE", "instead", "_ELSEWHERE", "_AWS_ONLY", "_ALTERNATIVES",
}  # fmt: skip
#: Shorter than that it only says of whom another error's text is, which has a step of its own.
OWN_TEXT = 45
ANOTHERS = {"error", "message", "said", "problem", "text", "found", "listed", "why", "named", "trouble", "refused"}


def calls(path):
    """Every call in a file that makes one of our errors, but for the one that has its step from its class."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = ERRORS - {"UnreadableJobError"} | {"invalid"}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def texts(node):
    """Every text in a call, in the order in which it is said."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        if child not in (getattr(node, "format_spec", None), getattr(node, "slice", None)):
            yield from texts(child)


def tells_a_step(call):
    said = (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "advice"))
    parts, text = list(ast.walk(call)), "; ".join("".join(texts(part)) for part in said)
    names = {part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    names |= {part.id for part in parts if isinstance(part, ast.Name)}
    names |= {part.attr for part in parts if isinstance(part, ast.Attribute) and part.attr == "advice"}
    told = names & WORKED_OUT or STEP.search(text) or RULE.search(text)
    return bool(told or (names & ANOTHERS and len(text) < OWN_TEXT))


def test_every_text_that_is_raised_tells_a_next_step():
    files = [path for path in sorted(SDK.rglob("*.py")) if "testing" not in path.parts]
    untold = [
        f"{path.relative_to(SDK).as_posix()}:{call.lineno} {ast.unparse(call)}"
        for path in files for call in calls(path) if not tells_a_step(call)
    ]  # fmt: skip
    assert untold == []


#: Where a `SpecError` is about a setting that is not an argument: environment variables, this machine, a config file.
NOT_ARGUMENTS = {
    "display/__init__.py": 1,
    "planning/runtime_query.py": 1,
    "platforms/local/hosts/container_limits.py": 1,
    "platforms/local/system/file_systems.py": 3,
    "platforms/registry.py": 1,
    "platforms/sagemaker/job_defaults.py": 1,
    "platforms/slurm/settings.py": 2,
}


def test_every_error_about_an_argument_names_the_argument_in_a_field():
    unnamed = {}
    for path in sorted(SDK.rglob("*.py")):
        name = path.relative_to(SDK).as_posix()
        kinds = [
            call for call in calls(path)
            if call.func.id in ("SpecError", "SourceError") and "argument" not in {each.arg for each in call.keywords}
        ]  # fmt: skip
        if kinds and not name.startswith(("testing/", "cli/")):
            unnamed[name] = len(kinds)
    assert unnamed == NOT_ARGUMENTS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("f'instance_count is {count!r}, which is not a number of hosts at all'", False),
        ("f'instance_count is {count!r}; that is not a number'", False),
        ("'no such job'", False),
        ("f'instance_count is {count!r}; give a whole number'", True),
        ("f'{uri}: {error}'", True),
        ("f'instance_count is {count!r}', argument='instance_count', advice='that is not a number'", False),
        ("f'instance_count is {count!r}', argument='instance_count', advice='give a whole number'", True),
    ],
)
def test_a_text_without_a_step_would_be_found(text, told):
    assert tells_a_step(ast.parse(f"SpecError({text})", mode="eval").body) == told
