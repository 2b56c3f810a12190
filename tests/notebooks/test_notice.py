"""The programs that save at the notice: SIGTERM before the end of a run. The next run goes on with the next step."""

import re
import signal

import pytest
from fakes.processes import until
from notebooks.execution import NOTEBOOKS

from scriptmode import MPI, Estimator, MultiWorkerMirrored, ParameterServer

DATA = NOTEBOOKS / "data" / "fashion_mnist"
EPOCHS, STEPS = 2, 100
pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    ("program", "distribution", "hosts"),
    [
        pytest.param("train_resume.py", None, 1, id="one host"),
        pytest.param("train_resume_mwms.py", MultiWorkerMirrored(), 2, id="mirrored"),
        pytest.param("train_fit.py", MultiWorkerMirrored(), 2, id="fit"),
        pytest.param("train_resume_hvd.py", MPI(processes_per_host=1), 2, id="horovod", marks=pytest.mark.mpi),
        pytest.param("train_resume_ps.py", ParameterServer(coordinator=True), 1, id="parameter server"),
    ],
)
def test_a_job_saves_at_the_notice_and_its_next_run_takes_the_next_step(jobs, program, distribution, hosts):
    name = start(jobs, program, distribution, hosts)
    jobs.until_line(name, "step 20")
    jobs.kill(name, number=signal.SIGTERM)
    until(lambda: not jobs.job_folder(name).has_agent())
    assert jobs.job_folder(name).read_state().secondary == "Interrupted", jobs.why(name)
    jobs.completed(name)
    log = "\n".join(jobs.lines(name))
    assert re.findall(r"resumed at step (\d+)", log) == re.findall(r"stopped at step (\d+)", log) != [], log
    made = [int(step) for step in re.findall(r" step (\d+)(?: of|$)", log.replace("at step", ""), re.MULTILINE)]
    assert made == [*range(1, EPOCHS * STEPS + 1)]
    assert "from its newest checkpoint, which was " in log


def start(jobs, program, distribution, hosts):
    estimator = Estimator(
        entry_point=program,
        source_dir=str(NOTEBOOKS / "code"),
        instance_count=hosts,
        platform=jobs.platform,
        distribution=distribution,
        # Only the notice and the end save.
        hyperparameters={
            "epochs": EPOCHS, "steps-per-epoch": STEPS, "batch-size": 16, "log-steps": 1, "checkpoint-steps": 10**6
        },
        environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
        max_retry_attempts=1,
        checkpoint_s3_uri=(jobs.folder / "kept").as_uri(),
        **jobs.estimator_arguments(),
    )  # fmt: skip
    return estimator.fit({each: (DATA / each).as_uri() for each in ("train", "eval")}, wait=False).name
