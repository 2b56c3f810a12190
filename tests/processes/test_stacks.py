"""What the processes of a running job do at a moment, asked without a setting of the job."""

import pytest
from fakes.command_line import program
from fakes.processes import until

from scriptmode.errors import PlatformError

WAITS = "import time\ndef waits_for_others():\n    time.sleep(600)\nprint('up', flush=True)\nwaits_for_others()"
MPI = {"sagemaker_mpi_enabled": True}


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{}, pytest.param(MPI, marks=pytest.mark.mpi)], ids=["script", "ranks"])
def test_the_stacks_of_every_host_are_printed_while_the_job_trains(jobs, jobs_of_the_command, layout):
    name = jobs.start(WAITS, hosts=2, hyperparameters=layout)
    until(lambda: sum(line.endswith("up") for line in jobs.lines(name)) == 2)
    found = jobs.platform.stacks(name)
    assert sorted(found) == ["algo-1", "algo-2"]
    assert "".join(found.values()).count('train.py", line 3 in waits_for_others') == 2
    assert program("stacks", name).stdout.count("in waits_for_others") == 2
    (jobs.job_folder(name).host("algo-2") / "stacks").rename(jobs.folder / "as in a pod")
    assert "algo-2 | no answer: it has no launcher of scriptmode, or" in program("stacks", name).stdout
    jobs.platform.stop(name)
    jobs.wait(name)
    with pytest.raises(PlatformError, match=f"training job {name} is Stopped; look at its log: scriptmode logs {name}"):
        jobs.platform.stacks(name)
