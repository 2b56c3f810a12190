"""Two hosts of an image of AWS's toolkit: a job that `test_foreign_image` starts and that ends while others are tested.

AWS's launcher sleeps for 30 s on each host after its ranks ended.
"""

import pytest
from fakes.local_jobs import unpacked

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]


def test_two_hosts_train_by_awss_own_mpi_launch(foreign_jobs):
    job = foreign_jobs["mpi"]
    assert job.until_ended() == "Completed", job.job.failure_reason
    assert set(job.records()) == {"algo-1 0", "algo-2 1"}
    assert {seen["host"] for seen in job.records().values()} == {"algo-1", "algo-2"}
    assert job.log().count("Reporting training SUCCESS") == 2
    assert set(unpacked(job.delivered())) == {"weights 0", "weights 1"}
    assert job.left() == []
