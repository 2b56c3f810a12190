"""What containers may use, what they may reach, and commands of theirs that are not scripts."""

import json
import socket
import subprocess

import pytest
from fakes.container_jobs import MEET, ContainerJobs
from fakes.local_jobs import unpacked
from fakes.processes import until

from scriptmode import Estimator
from scriptmode_local import LocalPlatform

pytestmark = [pytest.mark.docker, pytest.mark.slow]

MIB = 1024 * 1024
LIMITED = """
    import os

    def first(*names):
        for name in names:
            if os.path.exists(f"/sys/fs/cgroup/{name}"):
                with open(f"/sys/fs/cgroup/{name}") as file:
                    return file.read().split()

    status = os.statvfs("/dev/shm")
    print("shm", status.f_blocks * status.f_frsize)
    print("memory", *first("memory/memory.limit_in_bytes", "memory.max"))
    # Version 2 has the period beside it.
    print("cpus", first("cpu/cpu.cfs_quota_us", "cpu.max")[0])
    print("threads", os.environ["OMP_NUM_THREADS"], os.environ["TF_NUM_INTEROP_THREADS"])
    held = b"x" * (1024 * 1024 * 1024)
    print("more than it may have")
"""
#: An image's own `train`, without Python and without this project.
TRAIN = r"""
FROM BASE
RUN printf '#!/bin/sh\ncp /opt/ml/input/config/hyperparameters.json /opt/ml/model/told\necho "trained by $0 $*"\n' \
    > /usr/local/bin/train && chmod +x /usr/local/bin/train
"""
#: The bomb's own processes are all that runs.
FORK_BOMB = """
    import subprocess
    print("begun", flush=True)
    subprocess.run(["bash", "-c", "f() { f | f & }; while :; do f; sleep 1; done"], stderr=subprocess.DEVNULL)
"""
#: An image whose user is not root, and a program that belongs to root and gives its user root's rights.
PRIVILEGES = r"""
FROM BASE
RUN cp /usr/bin/id /usr/bin/id-of-root && chmod 4755 /usr/bin/id-of-root \
    && printf '#!/bin/sh\necho "user $(id-of-root -u)"\n' > /usr/local/bin/train && chmod +x /usr/local/bin/train
USER 12345:12345
"""
NO_MODEL = ["scriptmode: the script saved no files in SM_MODEL_DIR, so model.tar.gz is empty; save to /opt/ml/model"]
ISOLATED = """
host = os.environ["SM_CURRENT_HOST"]
partner.sendall(host.encode())
print("heard", partner.recv(100).decode())
own = socket.gethostbyname(host)
# This machine as the network's gateway and on Docker's own bridge, and an address of nobody's.
for place in (own[:own.rindex(".")] + ".1", "172.17.0.1", "192.0.2.1"):
    try:
        socket.create_connection((place, PORT), 1).close()
        print("reached", place)
    except OSError as error:
        print("cut off", type(error).__name__)
print("source", os.path.dirname(os.path.abspath(__file__)), os.listdir("/opt/ml/input/data/code"))
"""


def test_a_host_has_its_share_of_the_machine_and_not_more(tmp_path, runtime_image, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_CONTAINER_LIMITS", "cpus=0.5,memory=1g,shm_size=32m")
    jobs = ContainerJobs(tmp_path, runtime_image, container_limits={"memory": "300m"})
    description = jobs.run(LIMITED)
    lines = jobs.lines("job-1")
    assert f"algo-1: shm {32 * MIB}" in lines
    assert f"algo-1: memory {300 * MIB}" in lines
    assert "algo-1: cpus 50000" in lines
    assert "algo-1: threads 1 2" in lines
    assert "algo-1: more than it may have" not in lines
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"] == (
        "ClientError: algo-1: it ran out of its memory, 314.6 MB; "
        "give it more: LocalPlatform(container_limits={'memory': '8g'})"
    )
    jobs.close()


def estimator(folder, **arguments):
    """An estimator on containers, and the name of its job."""
    platform = LocalPlatform(data_dir=folder / "data")
    return Estimator(**{"instance_type": "local", "instance_count": 1, "platform": platform, **arguments})


def test_isolated_hosts_reach_each_other_and_nothing_else(tmp_path, runtime_image):
    with socket.create_server(("", 0)) as listening:
        (tmp_path / "isolated.py").write_text(MEET + ISOLATED.replace("PORT", str(listening.getsockname()[1])))
        made = estimator(
            tmp_path, entry_point=str(tmp_path / "isolated.py"), image_uri=runtime_image, instance_count=2,
            enable_network_isolation=True,
        )  # fmt: skip
        job = made.fit(logs=False)
    said = [f"{event.host}: {event.message}" for event in job.logs()]
    assert "algo-1: heard algo-2" in said
    assert not [line for line in said if "reached" in line]
    assert len([line for line in said if "cut off" in line]) == 6
    assert "algo-1: source /opt/ml/code ['sourcedir.tar.gz']" in said


def test_a_fork_bomb_leaves_the_machine_usable_and_can_be_stopped(tmp_path, runtime_image):
    jobs = ContainerJobs(tmp_path, runtime_image, container_limits={"pids": 200}, stop_grace=2)
    name = jobs.start(FORK_BOMB)
    jobs.until_line(name, "begun")
    count = ("docker", "stats", "--no-stream", "--format", "{{.PIDs}}", jobs.container(name, "algo-1"))
    # Docker and this test start processes beside it.
    assert until(lambda: int(subprocess.run(count, check=True, capture_output=True, timeout=600).stdout) > 150)
    assert int(subprocess.run(count, check=True, capture_output=True, timeout=600).stdout) <= 200
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    jobs.close()


@pytest.mark.parametrize(
    ("limits", "user"), [({}, 12345), ({"no_new_privileges": False}, 0)], ids=["by default", "allowed"]
)
def test_a_program_gives_its_user_more_rights_only_where_that_is_allowed(tmp_path, make_image, limits, user):
    platform = LocalPlatform(data_dir=tmp_path / "data", container_limits=limits)
    made = estimator(tmp_path, image_uri=make_image("privileges", PRIVILEGES), platform=platform)
    assert f"user {user}" in [event.message for event in made.fit(logs=False).logs()]


def test_an_image_without_a_script_runs_its_own_train(tmp_path, make_image):
    made = estimator(tmp_path, image_uri=make_image("train", TRAIN), hyperparameters={"epochs": 10})
    job = made.fit(logs=False)
    assert [event.message for event in job.logs()] == ["trained by /usr/local/bin/train "]
    (told,) = unpacked(job.model_data[len("file://") :]).values()
    assert json.loads(told) == {"epochs": "10"}


@pytest.mark.parametrize(
    ("entry_point", "arguments", "said"),
    [
        (["sh", "-c", 'echo "$0, $1"', "first"], ["with space"], "first, with space"),
        (["echo", "alone"], None, "alone"),
        (None, ["ls", "-d", "/opt/ml/model"], "/opt/ml/model"),
    ],
    ids=["both", "an entry point", "arguments"],
)
def test_an_entry_point_and_arguments_are_run_instead_of_train(tmp_path, make_image, entry_point, arguments, said):
    made = estimator(
        tmp_path, image_uri=make_image("train", TRAIN), container_entry_point=entry_point, container_arguments=arguments
    )
    assert [event.message for event in made.fit(logs=False).logs()] == [said, *NO_MODEL]
