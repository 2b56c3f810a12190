"""Modes x types x distributions x hosts, from this machine's files and from a real S3 server."""

import base64
import json
import os

import pytest
from engines.input_cells import CELLS, OBJECTS, stored
from fakes.installed import require_mounts
from fakes.processes import until

from scriptmode_local._data import mounts

#: Of one request (CreateTrainingJob, InputDataConfig).
MOST_CHANNELS = 20
READ = """
    import base64, json, os
    def text(path):
        with open(path, "rb") as file:
            return base64.b64encode(file.read()).decode()
    found = {}
    config = json.loads(os.environ["SM_INPUT_DATA_CONFIG"])
    for name in json.loads(os.environ["SM_CHANNELS"]):
        directory = os.path.join(os.environ["SM_INPUT_DIR"], "data", name)
        if config[name]["TrainingInputMode"] == "Pipe":
            found[name] = [text(f"{directory}_{epoch}") for epoch in range(3)]
        else:
            walk = [os.path.join(folder, file) for folder, _, files in os.walk(directory) for file in files]
            found[name] = {os.path.relpath(path, directory): text(path) for path in walk}
        if config[name]["TrainingInputMode"] == "File" and name.startswith("FastFile"):
            try:
                open(os.path.join(directory, "new"), "w")
                raise SystemExit(f"{name} can be written")
            except OSError as error:
                assert error.strerror == "Read-only file system", error
    with open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w") as file:
        json.dump([config, found], file)
"""


@pytest.fixture(scope="module", params=[("file", 3), ("s3", 1)], ids=str)
def received(request, engine, jobs):
    """Run jobs with every channel of the table, in files or in S3; return what each host got."""
    store, most = request.param
    hosts = min(most, engine.hosts)
    found = [({}, {}) for _ in range(hosts)]
    with pytest.MonkeyPatch.context() as patch:
        if store == "file":
            base = f"file://{jobs.folder}/{hosts}/"
            for name, body in stored(base).items():
                path = jobs.folder / str(hosts) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
        else:
            server, bucket = request.getfixturevalue("s3_server"), f"inputs-{engine.name}-{hosts}"
            base = f"s3://{bucket}/base/"
            server.bucket(bucket, {f"base/{name}": body for name, body in stored(base).items()})
            server.use(patch)
        read_all(jobs, base, found)
    return found


def read_all(jobs, base, found):
    """Run jobs with all channels on as many hosts as there are in ``found``; add what they got there."""
    cells = [cell for cell in CELLS if cell.mode != "FastFile" or not mounts.mount_obstacle()]
    chunks = [cells[begin : begin + MOST_CHANNELS] for begin in range(0, len(cells), MOST_CHANNELS)]
    names = [jobs.start(READ, hosts=len(found), channels=[cell.channel(base) for cell in chunk]) for chunk in chunks]
    for name in names:
        description = jobs.completed(name)
        # Nothing was copied that should have been mounted, and no pipe was left unread.
        lines = [line for line in jobs.lines(name) if ": scriptmode: channel" in line]
        assert lines == []
        until(lambda name=name: not jobs.remains(name))
        for (configs, contents), (_, text) in zip(found, sorted(jobs.model(description).items())):
            config, content = json.loads(text)
            configs.update(config)
            contents.update(content)


@pytest.mark.parametrize("arrival", CELLS, ids=lambda cell: cell.name)
def test_every_host_gets_its_share_byte_for_byte(received, arrival):
    count = len(received)
    if arrival.name not in received[0][0]:
        require_mounts()
    for host, (config, found) in enumerate(received):
        spelled = config[arrival.name]
        assert spelled["TrainingInputMode"] == ("Pipe" if arrival.mode == "Pipe" else "File")
        assert spelled["S3DistributionType"] == arrival.distribution
        assert spelled["RecordWrapperType"] == arrival.wrapper
        if arrival.mode != "Pipe" and arrival.seed is None:
            assert decoded(found[arrival.name]) == arrival.files(host, count)
        elif arrival.seed is None:
            epochs = [base64.b64decode(epoch) for epoch in found[arrival.name]]
            assert epochs == [arrival.framed(arrival.share(host, count))] * 3
    if arrival.seed is not None and arrival.mode != "Pipe":
        assert_dealt(arrival, [decoded(found[arrival.name]) for _, found in received])
    elif arrival.seed is not None:
        assert_shuffled(arrival, [found[arrival.name] for _, found in received])


def assert_dealt(cell, hosts):
    """Every file is on one host, byte for byte, as many on each as on the others; not as without a seed."""
    names = sorted(name for host in hosts for name in host)
    assert names == sorted(OBJECTS)
    assert all(body == OBJECTS[name] for host in hosts for name, body in host.items())
    assert max(map(len, hosts)) - min(map(len, hosts)) <= 1
    # Two hosts may get by chance what they get without a seed.
    assert len(hosts) < 3 or hosts != [cell.files(index, len(hosts)) for index in range(len(hosts))]


def assert_shuffled(cell, hosts):
    """Each epoch of all hosts is one order of the channel's items, dealt out (or given to all); no two are alike."""
    epochs = list(zip(*[[base64.b64decode(epoch) for epoch in host] for host in hosts]))
    orders = [order_of(cell, epoch) for epoch in epochs]
    assert None not in orders
    # One order twice in three epochs is what a stream that is shuffled once would give.
    assert len(set(epochs)) == len(epochs)


def order_of(cell, epoch):
    """Find the order of items whose shares are what the hosts got; None if there is none."""
    framed = [cell.framed([item]) for item in cell.items()]
    is_sharded = cell.distribution == "ShardedByS3Key"

    def search(order, rests):
        if len(order) == len(framed):
            return None if any(rests) else order
        receivers = [len(order) % len(epoch)] if is_sharded else range(len(epoch))
        for index in sorted(set(range(len(framed))) - set(order)):
            if all(rests[host].startswith(framed[index]) for host in receivers):
                cut = [rest[len(framed[index]) :] if host in receivers else rest for host, rest in enumerate(rests)]
                if found := search((*order, index), cut):
                    return found
        return None

    return search((), list(epoch))


def decoded(files):
    return {name: base64.b64decode(text) for name, text in files.items()}


SYSTEM = "fs-0123456789abcdef0"
WRITES = """
    import os
    for name in ("ro", "rw"):
        root = os.environ["SM_CHANNEL_" + name.upper()]
        print(name, sorted(os.listdir(root))[:1], open(os.path.join(root, "a")).read())
        try:
            open(os.path.join(root, name + "-" + os.environ["SM_CURRENT_HOST"]), "w").close()
        except OSError as error:
            print(name, error.strerror)
"""


def file_system(access):
    fields = {"FileSystemId": SYSTEM, "FileSystemType": "EFS", "DirectoryPath": "/shared"}
    return {"ChannelName": access, "DataSource": {"FileSystemDataSource": {**fields, "FileSystemAccessMode": access}}}


def test_a_file_system_is_the_directory_itself_and_is_written_only_where_that_is_allowed(engine, jobs):
    shared = jobs.folder / "disk" / "shared"
    shared.mkdir(parents=True)
    (shared / "a").write_text("A")
    request = jobs.request(WRITES, hosts=2, channels=[file_system("ro"), file_system("rw")])
    jobs.open(file_systems={SYSTEM: shared.parent}).create(request)
    name = request["TrainingJobName"]
    jobs.completed(name)
    lines = [line.partition(": ")[2] for line in jobs.lines(name)]
    assert lines.count("ro ['a'] A") == lines.count("rw ['a'] A") == 2
    written = {path.name for path in shared.iterdir()} - {"a"}
    if os.geteuid() == 0 or engine.name == "containers":
        assert lines.count("ro Read-only file system") == 2
        assert written == {"rw-algo-1", "rw-algo-2"}
    else:
        # Only root can mount a directory read-only; the log says so.
        assert {"rw-algo-1", "rw-algo-2"} < written
    until(lambda: not jobs.remains(name))
