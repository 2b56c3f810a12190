"""What has more processes than this machine has cores and memory for, wherever a job is asked for."""

import os
import re

import pytest
from click.testing import CliRunner

from scriptmode import MPI, ContinuousParameter, Estimator, ParameterServer, QuotaError, SpecError, Tuner
from scriptmode.errors import JobExistsError
from scriptmode.testing import FakeSageMaker, Layout, entry_point
from scriptmode_cli import scriptmode
from scriptmode_local import LocalPlatform

TOO_MANY = 2_000


@pytest.fixture(autouse=True)
def one_core(own_directory, no_settings):
    """Let this process have one core; return an entry point in the current directory."""
    (own_directory / "own.py").touch()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


def made(**arguments):
    return Estimator(entry_point="own.py", **{"instance_type": "local_process", **arguments})


def most(text):
    """Return the number that fits, which a message names."""
    return int(re.search(r"at most ([\d,]+) (?:fit|run well)", text)[1].replace(",", ""))


def tuner(at_once, *, jobs=100, strategy="Bayesian", **arguments):
    measured = made(metric_definitions="keras", **arguments)
    ranges = {"rate": ContinuousParameter(0, 1)}
    return Tuner(measured, "loss", ranges, strategy=strategy, max_jobs=jobs, max_parallel_jobs=at_once)


LAYOUTS = {
    "hosts": lambda count: {"instance_count": count},
    "hosts with parameter servers": lambda count: {"instance_count": count // 2, "distribution": ParameterServer()},
    "ranks": lambda count: {"distribution": MPI(count)},
    "hosts with ranks": lambda count: {"instance_count": 2, "distribution": MPI(count // 2)},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("verb", ["plan", "fit", "request"])
def test_more_processes_than_the_machine_bears_are_refused_before_there_is_a_job(tmp_path, verb, layout):
    numbers = r"fit: 64 on 1 core, [\d,]+ in .* GiB of memory \(256 MiB each\)"
    with pytest.raises(QuotaError, match=f"2,000 processes at once .* {numbers}; .*force=True.*--force") as refused:
        getattr(made(**layout(TOO_MANY)), verb)()
    fits = most(str(refused.value))
    assert 1 <= fits <= 64
    assert not (tmp_path / "data" / "jobs").exists()
    made(**layout(fits)).plan()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_more_processes_than_run_well_are_a_warning_with_the_number_that_does(capsys, layout):
    made(**layout(4)).plan()
    assert "at once" not in capsys.readouterr().err
    made(**layout(16)).plan()
    warned = capsys.readouterr().err
    assert "16 processes at once" in warned
    assert most(warned) == 4


def test_a_job_whose_log_is_not_shown_is_warned_of_too(capsys):
    crowd = made(instance_count=16)
    LocalPlatform().create(crowd.stored_request(job_name="once"), failure="recorded, and not run")
    with pytest.raises(JobExistsError):
        crowd.fit(job_name="once", logs=False)
    assert "16 processes at once" in capsys.readouterr().err
    entry_point("own.py", hosts=Layout(None, 16))
    assert "at once" not in capsys.readouterr().err


def test_force_goes_past_the_limit_and_a_copy_of_a_forced_job_is_forced(capsys):
    platform = LocalPlatform(force=True)
    request = made(distribution=MPI(TOO_MANY), platform=platform).stored_request(job_name="forced")
    platform.create(request, failure="recorded, and not run")
    assert "2,000 processes at once" not in capsys.readouterr().err
    LocalPlatform().with_settings_of("forced").validate(request)
    with pytest.raises(QuotaError):
        LocalPlatform().create({**request, "TrainingJobName": "other"})
    with pytest.raises(SpecError, match="force is 'no'; give True or False"):
        LocalPlatform(force="no")


RANKS = "--processes-per-host"


@pytest.mark.parametrize(("verb", "option"), [("plan", RANKS), ("run", RANKS), ("run", "--instance-count")])
def test_commands_name_their_own_option_and_plan_takes_force(verb, option):
    words = ["own.py", "--distribution", "mpi", option, str(TOO_MANY)]
    refused = CliRunner().invoke(scriptmode, [verb, *words])
    assert refused.exit_code == 2, refused.output
    assert "2,000 processes at once" in refused.output
    assert "LocalPlatform(force=True) or --force (of run, plan, and serve for" in refused.output
    assert refused.output.endswith(f"or use fewer ({option})\n")
    if verb == "plan":
        assert "ranks 0-1999" in CliRunner().invoke(scriptmode, ["plan", *words, "--force"]).output


def test_hosts_elsewhere_are_not_held_to_this_machine(capsys):
    arguments = {"role": "arn:aws:iam::123456789012:role/r", "image_uri": "x/scriptmode:1", "instance_count": 64}
    made(instance_type="ml.m5.large", sagemaker_session=FakeSageMaker(), **arguments).request()
    LocalPlatform().validate({**made().request(), "ResourceConfig": {
        "InstanceType": "slurm", "InstanceCount": TOO_MANY, "VolumeSizeInGB": 1}})  # fmt: skip
    assert "at once" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("platform", "is_refused"),
    [
        pytest.param({}, True, id="at once"),
        pytest.param({"queue": "auto"}, False, id="they wait for room"),
        pytest.param({"queue": 2}, False, id="two at once"),
        pytest.param({"force": True}, False, id="forced"),
    ],
)
def test_the_training_jobs_of_a_tuning_job_count_as_many_as_run_at_once(platform, is_refused):
    tuned = tuner(100, platform=LocalPlatform(**platform))
    if not is_refused:
        tuned.request()
        return
    with pytest.raises(QuotaError, match="100 processes at once .100 jobs of 1 host with 1 each. are too many"):
        tuned.request()


AWS = {"instance_type": "ml.m5.large", "role": "arn:aws:iam::123456789012:role/r", "image_uri": "x/scriptmode:1"}


@pytest.mark.parametrize("where", ["this machine", "Amazon SageMaker"])
def test_the_limits_of_aws_hold_for_every_tuning_job(where):
    here = {"platform": LocalPlatform(force=True)}
    arguments = here if where == "this machine" else {**AWS, "sagemaker_session": FakeSageMaker()}
    with pytest.raises(QuotaError, match="MaxParallelTrainingJobs is 101, .* at most 100"):
        tuner(101, jobs=101, **arguments).request()
    with pytest.raises(QuotaError, match="MaxNumberOfTrainingJobs is 751, .* strategy Bayesian has at most 750"):
        tuner(100, jobs=751, **arguments).request()
    tuner(100, jobs=10_000, strategy="Random", **arguments).request()
