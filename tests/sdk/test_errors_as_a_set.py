"""Every public error, raised by what a caller does: its text has the thing, the value and the next step."""

import ast
import copy
import importlib
import pickle
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from fakes.estimators import ROLE
from fakes.processes import until

import scriptmode
from scriptmode import CategoricalParameter, Estimator, TrainingJob, Tuner, errors
from scriptmode.testing import FakeSageMaker, Life
from scriptmode.testing._job_life import OUT_OF_CAPACITY
from scriptmode.v2 import _alias as alias
from scriptmode_local import LocalPlatform
from scriptmode_local._store.job_store import JobFolder
from scriptmode_runtime._processes import proc

ERRORS = {
    name for name in scriptmode.__all__ if isinstance(getattr(scriptmode, name), type)
    and issubclass(getattr(scriptmode, name), scriptmode.ScriptmodeError)
}  # fmt: skip
#: What callers catch several kinds by, and those kinds.
BASES = {
    "ScriptmodeError": ERRORS - {"ScriptmodeError"},
    "TrainingJobError": {"TrainingJobFailed", "CapacityError", "TrainingJobStopped"},
}
PYTHONS_OWN = {
    "SpecError": ValueError, "WaitTimeoutError": TimeoutError, "MissingPackageError": ImportError,
    "NotIncludedError": ModuleNotFoundError,
}  # fmt: skip


@dataclass
class Caller:
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
    meet: Callable
    thing: str
    value: str
    next_step: str
    #: The type of the error that it was made of, where there is one.
    cause: str = ""


@pytest.fixture
def caller(data_dir, tmp_path, no_settings):
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
    fake.quotas["ml.m5.large"] = 0
    estimator.fit()


def a_silent_service(caller, _):
    fake, estimator = caller.there()
    fake.disconnect("describe_training_job", times=1000)
    estimator.fit(logs=False)


def no_model_message(caller, _):
    job = caller.here("raise SystemExit(3)").fit(wait=False, job_name="lost")
    with pytest.raises(scriptmode.TrainingJobFailed):
        job.wait(timeout=600)
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
    until(lambda: not proc.is_running(folder.read_processes()["agent"]))
    (folder.path / "state.json").write_bytes(b"")
    job.describe()


def twice(caller, _):
    caller.here().fit(job_name="once", logs=False)
    caller.here().fit(job_name="once", logs=False)


def a_pipeline(*_):
    alias.activate()
    try:
        importlib.import_module("sagemaker.workflow.steps").TrainingStep("train")
    finally:
        alias.deactivate()


def a_fruitless_search(caller, _):
    estimator = caller.here("raise ValueError('no data')", metric_definitions=[{"Name": "loss", "Regex": "loss=(.+)"}])
    Tuner(estimator, "loss", {"lr": CategoricalParameter([1])}, strategy="Grid").fit(job_name="search", logs=False)


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
    "CredentialsError": Row(
        lambda caller, _: caller.here().fit("s3://bucket/train"),
        "channel 'training'", "s3://bucket/train: there are no AWS credentials", "run 'aws configure'"),
    "QuotaError": Row(a_quota, "ml.m5.large for training job usage", "is 0 Instances", "ask AWS or the server's owner", "ClientError"),
    "TransientError": Row(a_silent_service, "Training job img-", "given up after 900 s", "scriptmode logs -f", "TransientError"),
    "DataError": Row(no_model_message, "training job lost", "is Failed and has no model", "look at its log"),
    "DataNotFoundError": Row(no_object, "s3://data/modle.tar.gz", "there is no such object", "correct the URI"),
    "DataAccessError": Row(another_account, "s3://sagemaker-eu-west-1-123456789012", "access denied", "give output_path", "DataAccessError"),
    "UnreadableJobError": Row(
        an_empty_state, "training job 'emptied'", "state.json: it is empty", "delete it: scriptmode rm emptied", "ValueError"
    ),
    "ContainerError": Row(no_docker, "Docker daemon", "nowhere.sock cannot be used", "install Docker and start it", "FileNotFoundError"),
    "JobNotFoundError": Row(
        lambda *_: TrainingJob.attach("nope"),
        "no training job named 'nope'", "(Amazon SageMaker was not asked, because no AWS region is set)",
        "the data directory has no jobs", "CredentialsError",
    ),
    "JobExistsError": Row(twice, "training job", "'once'", "use another name"),
    "TrainingJobFailed": Row(
        lambda caller, _: caller.here("raise ValueError('no data')").fit(logs=False, job_name="bad"),
        "training job bad failed: algo-1", "ValueError: no data", "scriptmode rerun bad",
    ),
    "CapacityError": Row(
        lambda caller, _: caller.there(Life.failed(OUT_OF_CAPACITY))[1].fit(logs=False),
        "training job img-", "Unable to provision requested ML compute", "try another instance type"),
    "TrainingJobStopped": Row(
        lambda caller, _: caller.here("import time; time.sleep(600)", max_run=1).fit(logs=False),
        "training job training-", "longer than max_run (1 s)", "give it more time"),
    "TuningJobFailed": Row(a_fruitless_search, "tuning job search failed", "ValueError: no data", "see Tuner.attach('search').analytics()"),
    "MissingPackageError": Row(no_matplotlib, "plot()", "Matplotlib, which is not installed", "pip install matplotlib", "ImportError"),
    "NotIncludedError": Row(a_pipeline, "scriptmode has no", "sagemaker.workflow", "build pipelines with the SageMaker SDK's own"),
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


def test_errors_are_caught_by_their_bases_and_by_pythons_own_kinds():
    for name, expected in BASES.items():
        kinds = {each for each in ERRORS if issubclass(getattr(scriptmode, each), getattr(scriptmode, name))}
        assert kinds - {name} == expected
    assert all(issubclass(getattr(scriptmode, name), kind) for name, kind in PYTHONS_OWN.items())


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_can_be_pickled_and_copied(name):
    kind = getattr(scriptmode, name)
    if name == "UnreadableJobError":
        error = kind("job", Path("/state.json"), "it is empty")
    elif name in ("TrainingJobError", *BASES["TrainingJobError"], "TuningJobFailed"):
        error = kind("it failed", {"TrainingJobName": "job"})
    else:
        error = kind("it is wrong", argument="role", advice="give another")
        assert str(error) == "it is wrong; give another"
    for made in (copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, n)) for n in range(6))):
        assert (type(made), str(made), made.args, vars(made)) == (kind, str(error), error.args, vars(error))


#: Where a `SpecError` is about a setting that is not an argument: environment variables, this machine, a config file.
NOT_ARGUMENTS = {
    "scriptmode/planning/_host_plans.py": 1,
    "scriptmode_local/_service/one_host.py": 1,
    "scriptmode_local/_system/file_systems.py": 1,
    "scriptmode/_core/platforms/registry.py": 1,
    "scriptmode_kubernetes/_engine/settings.py": 2,
    "scriptmode_slurm/_engine/settings.py": 1,
}


def test_every_error_about_an_argument_names_the_argument_in_a_field():
    sdk = Path(scriptmode.__file__).parents[1]
    unnamed = Counter(
        name
        for name in sorted(path.relative_to(sdk).as_posix() for path in sdk.glob("scriptmode*/**/*.py"))
        for node in ast.walk(ast.parse((sdk / name).read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("SpecError", "SourceError")
        if not name.startswith(("scriptmode/testing/", "scriptmode_cli/"))
        and "argument" not in {each.arg for each in node.keywords}
    )
    assert unnamed == NOT_ARGUMENTS


LONG = {
    "a text": "x" * 3000, "a text with quotes": "it's \"" + "x" * 3000, "words": "a b " * 800, "a number": 10**3000,
    "bytes": b"x" * 3000, "a list": list(range(1000)), "a dict": {f"key {n}": n for n in range(400)},
}  # fmt: skip


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_no_error_repeats_a_value_of_thousands_of_characters(value):
    error = scriptmode.SpecError(f"argument is {value!r}; give a number", argument="argument")
    assert len(str(error)) < 500
    assert str(error).startswith(f"argument is {value!r}"[:50])
    assert str(error).endswith("; give a number")


def test_ordinary_errors_are_not_shortened():
    text = "the request is not valid:\n" + "\n".join(f"field {n} has no value 'a', use one of b, c" for n in range(99))
    assert str(scriptmode.RequestError(text)) == text


def test_the_apostrophe_of_a_genitive_does_not_begin_a_value():
    text = f"the job's {'word ' * 100} and the host's end"
    assert errors.shorten_values(text) == text
    assert errors.shorten_values(f"entry_point is '{'a b' * 200}'").count("[...]") == 1
