"""Channels in every mode reach hosts that are containers: from this machine, from S3, from file systems."""

import base64
import itertools
import json
import shutil

import pytest
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import channel

from scriptmode.data import mounts

pytestmark = [pytest.mark.docker, pytest.mark.slow]

OBJECTS = {"a": b"first", "b/c": b"second" * 1000, "d": bytes(range(256))}
SYSTEM = "fs-0123456789abcdef0"
READ = """
    import base64, json, os

    def text(path):
        with open(path, "rb") as file:
            return base64.b64encode(file.read()).decode()

    def refusal(path):
        try:
            with open(path, "w") as file:
                file.write(os.environ["SM_CURRENT_HOST"])
        except OSError as error:
            return error.strerror
        return ""

    found, refused = {}, {}
    config = json.loads(os.environ["SM_INPUT_DATA_CONFIG"])
    for name in json.loads(os.environ["SM_CHANNELS"]):
        place = os.path.join("/opt/ml/input/data", name)
        if config[name]["TrainingInputMode"] == "Pipe":
            found[name] = [text(f"{place}_{epoch}") for epoch in range(2)]
            continue
        walk = [os.path.join(folder, file) for folder, _, files in os.walk(place) for file in files]
        found[name] = {os.path.relpath(path, place): text(path) for path in sorted(walk)}
        refused[name] = refusal(os.path.join(place, "from-" + os.environ["SM_CURRENT_HOST"]))
    with open(os.path.join("/opt/ml/model", os.environ["SM_CURRENT_HOST"]), "w") as file:
        json.dump([found, refused], file)
"""


def file_system(name, access):
    source = {
        "FileSystemId": SYSTEM,
        "FileSystemAccessMode": access,
        "FileSystemType": "EFS",
        "DirectoryPath": "/shared",
    }
    return {"ChannelName": name, "DataSource": {"FileSystemDataSource": source}}


MODES = ("File", "FastFile", "Pipe")
SHARES = {"all": "FullyReplicated", "part": "ShardedByS3Key"}
CELLS = [f"{mode}-{share}-{store}" for mode, share, store in itertools.product(MODES, SHARES, ("file", "s3"))]


def cell(name, stores):
    """The request's entry for one of `CELLS`."""
    mode, share, store = name.split("-")
    return channel(name, stores[store], SHARES[share], InputMode=mode)


class Received:
    """What two hosts of one job got of every channel, and the file systems' folder."""

    def __init__(self, folder, image):
        self.disk = folder / "disk"
        for name, body in OBJECTS.items():
            (self.disk / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.disk / "data" / name).write_bytes(body)
        # Not the same: what is written there is no object of a channel that is still read.
        shutil.copytree(self.disk / "data", self.disk / "shared")
        self.jobs = ContainerJobs(folder, image, file_systems={SYSTEM: self.disk})
        stores = {"file": f"file://{self.disk}/data", "s3": "s3://containers/data/"}
        asked = [*(cell(name, stores) for name in CELLS), file_system("ro", "ro"), file_system("rw", "rw")]
        description = self.jobs.run(READ, hosts=2, channels=asked)
        assert description["TrainingJobStatus"] == "Completed", description["FailureReason"]
        model = self.jobs.model(description)
        self.found, self.refused = zip(*(json.loads(model[host]) for host in ("algo-1", "algo-2")))


@pytest.fixture(scope="module")
def received(tmp_path_factory, built, s3_server):
    s3_server.bucket("containers", {f"data/{name}": body for name, body in OBJECTS.items()})
    with pytest.MonkeyPatch.context() as patch:
        s3_server.use(patch)
        got = Received(tmp_path_factory.mktemp("inputs"), built("2.15.1"))
    yield got
    got.jobs.close()


@pytest.mark.parametrize("name", CELLS)
def test_every_host_gets_its_share_byte_for_byte(received, name):
    for index, found in enumerate(received.found):
        mine = sorted(OBJECTS)[index::2] if "-part-" in name else sorted(OBJECTS)
        if name.startswith("Pipe"):
            assert [base64.b64decode(epoch) for epoch in found[name]] == [b"".join(OBJECTS[key] for key in mine)] * 2
        else:
            assert decoded(found[name]) == {key: OBJECTS[key] for key in mine}


def test_what_is_mounted_read_only_cannot_be_written(received):
    for refused in received.refused:
        read_only = {name for name, why in refused.items() if why == "Read-only file system"}
        assert read_only == {"ro", *(name for name in CELLS if name.startswith("FastFile"))}


def test_a_file_system_is_the_folder_itself(received):
    for found in received.found:
        assert OBJECTS.items() <= decoded(found["ro"]).items()
    written = {path.name: path.read_text() for path in (received.disk / "shared").glob("from-*")}
    assert written == {"from-algo-1": "algo-1", "from-algo-2": "algo-2"}


def test_nothing_was_copied_that_can_be_mounted_and_no_mount_is_left(received):
    assert not [line for line in received.jobs.lines("job-1") if "scriptmode: channel" in line]
    assert mounts.mounted_below(received.jobs.data_dir) == []


def decoded(files):
    return {name: base64.b64decode(text) for name, text in files.items()}
