"""What goes wrong for users, by the public call: one clear error or a failed job that says why, and nothing left running."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from fakes.processes import processes_naming, until
from fakes.promptness import soon

from scriptmode import (
    MPI,
    CredentialsError,
    Estimator,
    MultiWorkerMirrored,
    ScriptmodeError,
    TrainingJobFailed,
    TrainingJobStopped,
)
from scriptmode.platforms.local import LocalPlatform


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def estimator(tmp_path):
    def make(program, **arguments):
        code = tmp_path / "code"
        code.mkdir(exist_ok=True)
        (code / "train.py").write_text(textwrap.dedent(program))
        defaults = {"entry_point": "train.py", "source_dir": str(code), "instance_type": "local_process"}
        return Estimator(**{**defaults, **arguments})

    return make


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(
            "raise ValueError('bad learning rate')", ["exit code 1", "ValueError: bad learning rate"], id="raises"
        ),
        pytest.param("import sys; sys.exit(3)", ["exit code 3"], id="exits 3"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ["SIGKILL", "137"], id="is killed"),
        pytest.param("import horovod_of_another_name", ["No module named 'horovod_of_another_name'"], id="no module"),
        pytest.param(
            "print('x' * 5000); raise KeyError('k')", ["KeyError: 'k'", "exit code 1"], id="a long line before"
        ),
        pytest.param("def broken(:\n    pass", ["SyntaxError"], id="does not compile"),
    ],
)
@pytest.mark.parametrize("hosts", [1, 2])
def test_a_failing_script_is_told_with_host_and_code_and_the_end_of_its_traceback(
    estimator, program, said, hosts, tmp_path
):
    made = estimator(program, instance_count=hosts)
    with pytest.raises(TrainingJobFailed) as caught:
        made.fit()
    assert caught.value.reason.startswith("AlgorithmError: algo-")
    for words in said:
        assert words in caught.value.reason
    until(lambda: not processes_naming(str(tmp_path)))


@pytest.mark.prompt
def test_one_of_several_hosts_failing_ends_the_others_and_is_the_one_told(estimator, tmp_path):
    made = estimator(
        """
        import os, sys, time
        if os.environ["SM_CURRENT_HOST"] == "algo-2":
            sys.exit(7)
        time.sleep(600)
        """,
        instance_count=3,
        distribution=MultiWorkerMirrored(),
    )
    began = time.monotonic()
    with pytest.raises(TrainingJobFailed, match="algo-2.*exit code 7"):
        made.fit()
    soon(time.monotonic() - began, 20)
    until(lambda: not processes_naming(str(tmp_path)))


@pytest.mark.mpi
def test_a_killed_rank_is_named(estimator, tmp_path):
    made = estimator(
        """
        import os, signal, time
        if os.environ["OMPI_COMM_WORLD_RANK"] == "3":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
        """,
        instance_count=2,
        distribution=MPI(processes_per_host=2),
    )
    with pytest.raises(TrainingJobFailed, match="rank 3.*SIGKILL"):
        made.fit()
    until(lambda: not processes_naming(str(tmp_path)))


@pytest.mark.mpi
def test_a_rank_that_finds_no_horovod_is_told_how_to_get_it(estimator):
    made = estimator(
        """
        import sys
        class NotThere:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("horovod"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, NotThere())
        import horovod.tensorflow
        """,
        distribution=MPI(processes_per_host=2),
    )
    with pytest.raises(TrainingJobFailed, match="Horovod is not installed"):
        made.fit()


def test_a_script_that_hangs_past_max_run_is_stopped_and_the_limit_named(estimator, tmp_path):
    made = estimator("import time; print('in', flush=True); time.sleep(600)", max_run=2)
    with pytest.raises(TrainingJobStopped, match=r"max_run \(2 s\)") as caught:
        made.fit()
    assert caught.value.secondary_status == "MaxRuntimeExceeded"
    until(lambda: not processes_naming(str(tmp_path)))


def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(estimator, tmp_path):
    made = estimator(
        """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        time.sleep(600)
        """,
        platform=LocalPlatform(stop_grace=1),
    )
    job = made.fit(wait=False)
    next(event for event in job.logs(follow=True) if event.message == "deaf")
    job.stop()
    with pytest.raises(TrainingJobStopped):
        job.wait(timeout=100)
    until(lambda: not processes_naming(str(tmp_path)))


def test_requirements_that_cannot_be_met_fail_the_job_with_pips_own_words(estimator, tmp_path):
    made = estimator("print('never')")
    (tmp_path / "code" / "requirements.txt").write_text("./no-such-package-here\n")
    with pytest.raises(TrainingJobFailed, match="requirements") as caught:
        made.fit()
    assert "no-such-package-here" in caught.value.reason


def test_requirements_are_installed_for_the_job_alone(estimator, tmp_path):
    made = estimator("import only_for_the_job; print('got', only_for_the_job.value)")
    package = tmp_path / "code" / "package"
    package.mkdir()
    (package / "only_for_the_job.py").write_text("value = 42")
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "only-for-the-job"\nversion = "1"\n'
    )
    (tmp_path / "code" / "requirements.txt").write_text("./package\n")
    job = made.fit()
    assert "got 42" in [event.message for event in job.logs()]
    with pytest.raises(ModuleNotFoundError):
        import only_for_the_job  # noqa: F401


def test_names_with_spaces_quotes_and_unicode_work(tmp_path, hostile_name):
    name = hostile_name
    code = tmp_path / f"code {name.strip('-')}"
    (code / "data").mkdir(parents=True)
    (code / "data" / name).write_text("")
    (code / f"{name}.py").write_text("import sys, pathlib; print(pathlib.Path(sys.argv[0]).stem == sys.argv[2])")
    made = Estimator(
        entry_point=f"{name}.py", source_dir=str(code), instance_type="local_process", hyperparameters={"name": name}
    )
    job = made.fit({"train": (code / "data").as_uri()})
    assert "True" in [event.message for event in job.logs()]


def test_a_missing_channel_folder_is_named_before_anything_is_started(estimator, tmp_path):
    made = estimator("print(1)")
    with pytest.raises(ScriptmodeError) as caught:
        made.fit({"train": (tmp_path / "nowhere").as_uri()})
    assert "train" in str(caught.value)
    assert "nowhere" in str(caught.value)
    assert LocalPlatform().list() == []


def test_an_s3_channel_without_credentials_is_named_before_anything_is_started(estimator, monkeypatch):
    for variable in list(os.environ):
        if variable.startswith("AWS_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    with pytest.raises(CredentialsError, match="s3://bucket/train"):
        estimator("print(1)").fit("s3://bucket/train")
    assert LocalPlatform().list() == []


def test_a_client_interrupted_while_following_leaves_the_job_and_says_how_to_come_back(estimator, tmp_path):
    over = tmp_path / "over"
    estimator(
        f"""
        import os, time
        print("in", flush=True)
        while not os.path.exists({str(over)!r}):
            time.sleep(0.01)
        print("out")
        """
    )
    client = tmp_path / "client.py"
    client.write_text(
        "from scriptmode import Estimator\n"
        "Estimator(entry_point='train.py', source_dir='code', instance_type='local_process').fit(job_name='lives')\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(client)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    for line in process.stdout:
        if line == "algo-1 | in\n":
            break
    # As a terminal's Ctrl-C: to the whole foreground group.
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=100)[1]
    assert "scriptmode logs -f lives" in said
    assert "scriptmode stop lives" in said
    job = Estimator.attach("lives").latest_training_job
    assert job.status == "InProgress"
    over.touch()
    job.wait(timeout=100)
    assert "out" in [event.message for event in job.logs()]
