"""Modes x types x distributions x hosts, from this machine's files and from a real S3 server."""

import base64
import json

import pytest
from fakes.local_jobs import LocalJobs
from processes.input_cells import CELLS, OBJECTS, stored

#: Of one request (CreateTrainingJob, InputDataConfig).
MOST_CHANNELS = 20
pytestmark = pytest.mark.slow
READ = """
    import base64, json, os
    def text(path):
        with open(path, "rb") as file:
            return base64.b64encode(file.read()).decode()
    found = {}
    config = json.loads(os.environ["SM_INPUT_DATA_CONFIG"])
    for name in json.loads(os.environ["SM_CHANNELS"]):
        place = os.path.join(os.environ["SM_INPUT_DIR"], "data", name)
        if config[name]["TrainingInputMode"] == "Pipe":
            found[name] = [text(f"{place}_{epoch}") for epoch in range(3)]
        else:
            walk = [os.path.join(folder, file) for folder, _, files in os.walk(place) for file in files]
            found[name] = {os.path.relpath(path, place): text(path) for path in walk}
    with open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w") as file:
        json.dump([config, found], file)
"""


@pytest.fixture(scope="module", params=["file", "s3"])
def base(request, tmp_path_factory, s3_server):
    """The URI below which everything lies, on this machine or in S3."""
    if request.param == "s3":
        uri = "s3://matrix/base/"
        s3_server.bucket("matrix", {f"base/{name}": body for name, body in stored(uri).items()})
        return uri
    folder = tmp_path_factory.mktemp("matrix")
    for name, body in stored(f"file://{folder}/").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return f"file://{folder}/"


@pytest.fixture(scope="module", params=[1, 3], ids=["1 host", "3 hosts"])
def received(request, base, s3_server, tmp_path_factory):
    """Run one job with every channel of the table; give what each host got."""
    jobs = LocalJobs(tmp_path_factory.mktemp("jobs"))
    found = [({}, {}) for _ in range(request.param)]
    with pytest.MonkeyPatch.context() as patch:
        s3_server.use(patch)
        for begin in range(0, len(CELLS), MOST_CHANNELS):
            channels = [cell.channel(base) for cell in CELLS[begin : begin + MOST_CHANNELS]]
            description = jobs.run(READ, hosts=request.param, channels=channels)
            assert description["TrainingJobStatus"] == "Completed", description["FailureReason"]
            # Nothing was copied that should have been mounted, and no pipe was left unread.
            assert not [line for line in jobs.lines(description["TrainingJobName"]) if ": scriptmode: channel" in line]
            for (configs, contents), (_, text) in zip(found, sorted(jobs.model(description).items())):
                config, content = json.loads(text)
                configs.update(config)
                contents.update(content)
    yield found
    jobs.close()


@pytest.mark.parametrize("arrival", CELLS, ids=lambda cell: cell.name)
def test_every_host_gets_its_share_byte_for_byte(received, arrival):
    count = len(received)
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
    assert len(hosts) == 1 or hosts != [cell.files(index, len(hosts)) for index in range(len(hosts))]


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
