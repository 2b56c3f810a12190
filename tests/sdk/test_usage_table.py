"""The table of ``scriptmode top``: a line for each host, as wide as its cells, and as much of it as a terminal has room."""

from scriptmode.core.request.parse import parse_description
from scriptmode.core.spec.service_values import HostActivity
from scriptmode.display.usage_table import _fitted, usage_lines


def described(name, hosts=1, secondary="Training"):
    return parse_description(
        {
            "TrainingJobName": name,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": secondary,
            "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": hosts},
        }
    )


BUSY = HostActivity(silent_seconds=12.4, cpu_percent=198.4, memory_bytes=1_300_000_000)
IDLE = HostActivity(silent_seconds=300, cpu_percent=0.2, memory_bytes=85_000_000)


def test_each_host_of_each_job_has_a_line_and_unknown_cells_are_dashes():
    jobs = [(described("mnist-1", 2), {"algo-2": IDLE, "algo-1": BUSY}), (described("b", secondary="Downloading"), {})]
    assert usage_lines(jobs) == [
        "JOB      STATUS       HOST     CPU   MEMORY  LAST OUTPUT",
        "mnist-1  Training     algo-1  198%   1.3 GB     12 s ago",
        "mnist-1  Training     algo-2    0%  85.0 MB    5 min ago",
        "b        Downloading  -          -        -            -",
    ]


def test_gpus_have_columns_where_there_are_any():
    on_gpu = HostActivity(cpu_percent=1.0, gpu_percent=87.0, gpu_memory_bytes=10_000_000_000)
    head, first, second = usage_lines([(described("a", 2), {"algo-1": on_gpu, "algo-2": IDLE})])
    assert head.split() == ["JOB", "STATUS", "HOST", "CPU", "MEMORY", "GPU", "GPU", "MEMORY", "LAST", "OUTPUT"]
    assert first.split() == ["a", "Training", "algo-1", "1%", "-", "87%", "10.0", "GB", "-"]
    assert second.split()[5:7] == ["MB", "-"]


def test_a_small_terminal_has_the_beginning_of_lines_and_says_how_many_it_has_no_room_for():
    assert [text.plain for text in _fitted(["head of it", "é", "b", "c"], 6, 3)] == ["head …", "é", "and 2…"]
    assert [text.plain for text in _fitted(["head", "a", "b"], 20, 3)] == ["head", "a", "b"]
