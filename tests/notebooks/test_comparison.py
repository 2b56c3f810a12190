"""The notebook that trains one network with parameter servers and with Horovod, and measures both."""

import re

import pytest
from notebooks.execution import executed

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(3600)]

WIDTH = 512


def size(width):
    """Bytes of the network's gradients for 32 x 32 x 3: two convolutions, two dense layers; each with its biases."""
    return 4 * ((27 * 16 + 16) + (144 * 32 + 32) + (2048 * width + width) + (width * 10 + 10))


@pytest.fixture(scope="module")
def comparison():
    sizes = {"IMAGES": 1280, "EPOCHS": 2, "WORKERS": [1], "WIDTHS": [WIDTH], "ACCURACY": 0.12}
    with executed("parameter_servers_or_horovod", **sizes) as execution:
        execution.rows = {row["layout"]: row for row in execution.value("[vars(row) for row in rows]")}
        yield execution


def summary(comparison, job):
    lines = comparison.value(f"[event.message for event in {job}.logs() if 'summary:' in event.message]")
    return dict(re.findall(r"(\S+)=(\S+)", lines[-1]))


def test_workers_read_the_pipes_of_the_objects_of_their_own_hosts(comparison):
    said = summary(comparison, "ps_job")
    assert (said["layout"], said["trainers"]) == ("parameter_server", "2")
    channel = comparison.value("ps_job.describe()['InputDataConfig'][0]")
    assert channel["InputMode"] == "Pipe"
    assert channel["DataSource"]["S3DataSource"]["S3DataDistributionType"] == "ShardedByS3Key"


def test_two_processes_of_one_host_are_one_ring_with_options_of_our_own(comparison):
    said = summary(comparison, "hvd_job")
    assert (said["layout"], said["trainers"]) == ("horovod", "2")
    assert comparison.value("hvd_job.describe()['ResourceConfig']['InstanceCount']") == 1
    # Each rank sends the other half of its gradients, and then half of the sums; shared memory would not be counted.
    assert float(said["bytes/step"]) > 1.9 * size(64)


def test_both_models_are_read_back_and_score_what_the_jobs_said(comparison):
    said = dict(re.findall(r"^(parameter servers|Horovod): accuracy (\S+)", comparison.text(), re.MULTILINE))
    assert float(said["parameter servers"]) == pytest.approx(float(summary(comparison, "ps_job")["accuracy"]), abs=1e-3)
    assert float(said["Horovod"]) == pytest.approx(float(summary(comparison, "hvd_job")["accuracy"]), abs=1e-3)


def test_every_combination_has_its_row_and_learns(comparison):
    assert set(comparison.rows) == {"parameter servers", "Horovod"}
    for row in comparison.rows.values():
        assert (row["workers"], row["width"]) == (1, WIDTH)
        assert row["accuracy"] > 0.15  # guessing gives 0.10
        assert row["seconds"] > 0
        assert row["images_per_second"] > 0
    head = r"layout +workers +width +images/s +s to accuracy +MB/step +accuracy at the end"
    assert re.search(head, comparison.text())
    assert len(comparison.pictures()) == 2
    # A lone worker, too, fetches the variables and sends the gradients back. Only the least is certain: the counter of
    # the loopback interface has what other tests send meanwhile.
    assert comparison.rows["parameter servers"]["step_bytes"] > 1.9 * size(WIDTH)
