"""What each host of a job on this machine is given: /opt/ml as the service writes it, variables, a log and ports."""

import json
import os
import socket
import tracemalloc
from itertools import zip_longest

import pytest
from fakes.local_jobs import channel, request_for
from hypothesis import HealthCheck, given, settings, strategies as st

from scriptmode._core.request.parse import parse_request
from scriptmode_local._data.durable import sync_file
from scriptmode_local._hosts.container_fleet import container_environment
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._store import host_logs
from scriptmode_local._store.agent_log import append_line
from scriptmode_local._store.job_record import Job
from scriptmode_local._system import ports as ports_module
from scriptmode_local._system.ports import LOWEST, ROLES, Ports
from scriptmode_runtime._terminal_line import last_frame

GRACE = "SCRIPTMODE_STOP_GRACE_SECONDS"
GROUPS = [
    {"InstanceGroupName": "gpus", "InstanceType": "local_process", "InstanceCount": 2},
    {"InstanceGroupName": "cpus", "InstanceType": "local_process", "InstanceCount": 1},
]


def prepared(folder, request, host="algo-1"):
    Sandbox(host, folder / host).prepare(parse_request(request), {})
    return {file.stem: json.loads(file.read_text()) for file in (folder / host / "input" / "config").iterdir()}


def test_resourceconfig_of_a_homogeneous_cluster(tmp_path):
    config = prepared(tmp_path, request_for("job", hosts=2), "algo-2")["resourceconfig"]
    assert config == {
        "current_host": "algo-2", "current_instance_type": "local_process",
        "current_group_name": "homogeneousCluster", "hosts": ["algo-1", "algo-2"],
        "instance_groups": [
            {
                "instance_group_name": "homogeneousCluster",
                "instance_type": "local_process",
                "hosts": ["algo-1", "algo-2"],
            }
        ],
        "network_interface_name": "lo",
    }  # fmt: skip


def test_instance_groups_number_the_hosts_through_them_and_have_channels_of_their_own(tmp_path):
    request = request_for("job", channels=[channel("train", "file:///a")])
    request["ResourceConfig"] = {"InstanceGroups": GROUPS}
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["InstanceGroupNames"] = ["cpus"]
    assert prepared(tmp_path, request, "algo-1")["inputdataconfig"] == {}
    config = prepared(tmp_path, request, "algo-3")
    assert list(config["inputdataconfig"]) == ["train"]
    resources = config["resourceconfig"]
    assert (resources["current_group_name"], resources["hosts"]) == ("cpus", ["algo-1", "algo-2", "algo-3"])
    assert [group["hosts"] for group in resources["instance_groups"]] == [["algo-1", "algo-2"], ["algo-3"]]


@pytest.mark.parametrize(
    ("text", "on_the_host"),
    [
        ('"/opt/ml"', '"{base}"'), ("/opt/ml/model", "{base}/model"), ('"/opt/mlops"', '"/opt/mlops"'),
        ('"see /opt/ml/model"', '"see /opt/ml/model"'), ("not json", "not json"),
    ],
)  # fmt: skip
def test_hyperparameters_that_name_opt_ml_name_the_sandbox(tmp_path, text, on_the_host):
    request = request_for("job")
    request["HyperParameters"]["x"] = text
    base = str(tmp_path / "algo-1")
    assert prepared(tmp_path, request)["hyperparameters"]["x"] == on_the_host.replace("{base}", base)


def test_the_environment_of_a_container_is_the_requests_and_the_callers_credentials():
    request = request_for("job")
    request["Environment"] = {"OUT": "/opt/ml/output", "AWS_SESSION_TOKEN": "asked"}
    inherited = {"HOME": "/root", "AWS_ACCESS_KEY_ID": "a", "AWS_SESSION_TOKEN": "t", "AWS_PROFILE": "p"}
    job = Job(parse_request(request), "arn", "us-east-1", "python", 120.0)
    expected = {"OUT": "/opt/ml/output", "AWS_ACCESS_KEY_ID": "a", "AWS_SESSION_TOKEN": "asked"}
    assert container_environment(job, inherited) == job.variables(expected)


@pytest.mark.parametrize(
    ("requested", "granted"),
    [({}, "20"), ({GRACE: ""}, "20"), ({GRACE: "0.5"}, "0.5"), ({GRACE: "20.5"}, "20"), ({GRACE: "soon"}, "soon"),
     ({GRACE: "nan"}, "nan")],
    ids=str,
)  # fmt: skip
def test_a_job_may_ask_for_less_time_to_stop_than_the_platform_grants(requested, granted):
    job = Job(parse_request(request_for("job")), "arn", "us-east-1", "python", 20.0)
    assert job.variables(requested)[GRACE] == granted


@pytest.fixture
def reader(tmp_path, closed_after):
    return closed_after(host_logs.LogReader(tmp_path / "log"))


def taken(reader, *, final=False):
    """The lines that came, none of which is in pieces."""
    found = list(reader.lines(final=final))
    assert not any(continues for _, continues in found)
    return [text for text, _ in found]


def test_a_line_is_what_a_line_feed_ends(tmp_path, reader):
    assert taken(reader) == []
    with (tmp_path / "log").open("ab", buffering=0) as log:
        log.write(b"one\ntw")
        assert taken(reader) == ["one"]
        assert taken(reader) == []
        log.write("o\n10%\r20%\rdone\n\nü".encode()[:-1])
        assert taken(reader) == ["two", "10%\r20%\rdone", ""]
        log.write("ü".encode()[1:] + b"\xff")
        assert taken(reader, final=True) == ["ü\ufffd"]
    assert taken(reader, final=True) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.binary(max_size=20) | st.lists(st.sampled_from([b"\r", b"\b", b" ", b"\n", b"50%"])).map(b"".join)),
    st.integers(1, 7),
)
def test_lines_are_the_same_however_they_arrive(tmp_path, parts, chunk):
    log = tmp_path / "log"
    log.write_bytes(b"")
    reader = host_logs.LogReader(log)
    original, host_logs.CHUNK = host_logs.CHUNK, chunk
    try:
        lines = list(reader.lines(final=False))
        with log.open("ab", buffering=0) as file:
            for part in parts:
                file.write(part)
                lines += reader.lines(final=False)
        lines += reader.lines(final=True)
    finally:
        host_logs.CHUNK = original
        reader.close()
    whole = b"".join(parts).decode("utf-8", "replace")
    found = "".join(text + ("" if continues else "\n") for text, continues in lines)
    pairs = list(zip_longest(found.split("\n"), (whole + "\n" * (whole[-1:] not in ("", "\n"))).split("\n")))
    assert all(found == line for found, line in pairs if "\r" not in line)
    assert [last_frame(found) for found, _ in pairs] == [last_frame(line) for _, line in pairs]
    assert all(len(text) <= 2 * chunk + 3 for text, _ in lines)


@pytest.mark.parametrize("start", ["", "start" * 500_000])
def test_of_a_long_line_with_frames_the_last_ones_are_read_in_one_piece(tmp_path, reader, start):
    line = start + "".join(f"\r{number:06} loss={number}.5" for number in range(500_000))
    (tmp_path / "log").write_text(f"one\n{line}\r\r\ntwo")
    tracemalloc.start()
    first, *pieces, last, second = reader.lines(final=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (first, second) == (("one", False), ("two", False))
    assert (line + "\r\r").endswith(last[0])
    assert last[0].endswith("loss=499999.5\r\r")
    assert start.startswith("".join(text for text, _ in pieces))
    assert most < 10 * host_logs.CHUNK


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""), (b"one\ntwo\n", ""), (b"one\n\r10%\r20%", "\r10%\r20%"),
        (b"one\n" + "é 20%".encode()[1:], "\ufffd 20%"), (b"a" * 100_000, "a" * 8192),
    ],
    ids=["empty", "ended", "progress bar", "half a character", "long"],
)  # fmt: skip
def test_an_unfinished_line_is_what_follows_the_last_line_feed(tmp_path, content, line):
    assert host_logs.unfinished_line(tmp_path / "log") == ""
    (tmp_path / "log").write_bytes(content)
    assert host_logs.unfinished_line(tmp_path / "log") == line
    (tmp_path / "log").unlink()
    os.mkfifo(tmp_path / "log")
    assert host_logs.unfinished_line(tmp_path / "log") == ""


def test_ports_are_given_back_and_taken_ones_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(ports_module, "_ephemeral_start", lambda: LOWEST + 2 * len(ROLES))
    ports = Ports(tmp_path)
    first = ports.reserve(["algo-1"])["algo-1"]["worker"]
    ports.release()
    with socket.create_server(("127.0.0.1", first + 3)):
        other = ports.reserve(["algo-1"])["algo-1"]["worker"]
        assert other != first
        with pytest.raises(Exception, match="algo-2: no block of . free ports between 10000"):
            ports.reserve(["algo-2"])
    ports.release()


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "said\n"), ("whole\n", "whole\nsaid\n"), ("of a killed proc", "of a killed proc\nsaid\n")],
    ids=["empty", "whole", "half a line"],
)
def test_an_appended_line_is_never_part_of_another(tmp_path, before, after):
    log = tmp_path / "algo-1.log"
    log.write_text(before)
    append_line(log, "said")
    assert log.read_text() == after


@pytest.mark.parametrize("act", [lambda log: append_line(log, "said"), sync_file], ids=["append", "sync"])
def test_a_fifo_in_a_logs_place_is_refused_at_once(tmp_path, act):
    log = tmp_path / "algo-1.log"
    os.mkfifo(log)
    with pytest.raises(OSError, match=r"it is not a regular file|Invalid argument"):
        act(log)
