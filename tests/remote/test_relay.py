"""A relay and its host send large files to each other, and what a host sends is checked."""

import json
import os
import signal
import socket
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest
from fakes.processes import processes_naming, until

from scriptmode import Estimator
from scriptmode._core.spec.training_job import Output
from scriptmode.engines import Fleet, StreamKeys
from scriptmode.errors import TrainingJobFailed
from scriptmode_local._agent.host_messages import MessageReader
from scriptmode_local._remote import remote_host
from scriptmode_local._remote.frames import send_frame
from scriptmode_local._remote.relay import Relay
from scriptmode_local._remote.tls_stream import ListeningStream, connect
from scriptmode_local._store.job_store import JobFolder

RESTORES = """
import os
from pathlib import Path
files = list(Path(os.environ["SM_MODEL_DIR"], "../checkpoints").iterdir())
print("restored", len(files), sum(each.stat().st_size for each in files), flush=True)
"""

SAVES = """
import os
from pathlib import Path
for number in range(2000):
    Path(os.environ["SM_MODEL_DIR"], f"part-{number:04}").write_bytes(bytes(100_000))
"""


class Pipes:
    """What the relay has in place of a connection."""

    def __init__(self, incoming, outgoing):
        for descriptor in (incoming, outgoing):
            os.set_blocking(descriptor, False)
        source = os.fdopen(incoming, "rb", buffering=0, closefd=False)
        target = os.fdopen(outgoing, "wb", buffering=0, closefd=False)
        self.descriptors, self.read, self.write, self.fileno = [incoming], source.read, target.write, target.fileno


class Ends:
    """A relay that runs in a thread, and the ends of its stream and of its pipes."""

    def __init__(self, folder, stream=None):
        folder.mkdir()
        self.folder = JobFolder(folder)
        for each in ("channels", "hosts/algo-1", "logs", "usage"):
            (folder / each).mkdir(parents=True)
        incoming, host = os.pipe()
        self.stream = os.fdopen(host, "wb", buffering=0, closefd=False)
        self.sent, outgoing = os.pipe()
        commands, self.commands = os.pipe()
        events, their_events = os.pipe()
        self.events = MessageReader(events, "event")
        job = SimpleNamespace(request=SimpleNamespace(output=Output("file:///out"), channels=()))
        self.fleet = Fleet(self.folder, job, None, {})
        self.fleet.write_sandbox = lambda *_: False
        stream = stream or Pipes(incoming, outgoing)
        self.relay = Relay((self.folder, job), "algo-1", stream, (commands, their_events), self.fleet)
        self.codes = []
        self.thread = threading.Thread(target=lambda: self.codes.append(self.relay.run()), daemon=True)

    def start(self):
        """Run the relay."""
        self.thread.start()

    def send(self, kind, content=b"", **fields):
        """Send a frame as the host."""
        send_frame(self.stream, kind, content, **fields)

    def read(self):
        """Read what the relay sends, for ever."""
        while os.read(self.sent, 1 << 20):
            pass

    def command(self, **command):
        """Send a command as the job's agent."""
        os.write(self.commands, json.dumps(command).encode() + b"\n")

    def until_event(self, wanted):
        """Return the first event of that name."""
        found = []

        def arrived():
            found.extend(each for each in self.events.read() if each["event"] == wanted)
            return bool(found)

        until(arrived)
        return found[0]

    def end(self):
        """Wait for the end of the relay; return its exit code."""
        until(lambda: bool(self.codes))
        return self.codes[0]


@pytest.fixture
def ends(tmp_path):
    """Return a relay that was not started."""
    return Ends(tmp_path / "job")


FILE = {"last": True, "mode": 0o600, "mtime": 1}
REFUSED = {
    "a link in the place of the log": ("link", {"path": "logs/algo-1.log", "target": "/etc/passwd"}),
    "the log by another spelling": ("link", {"path": "./logs//algo-1.log", "target": "/etc/passwd"}),
    "a link in the place of the model": ("link", {"path": "hosts/algo-1/model/", "target": "/"}),
    "the configuration": ("file", {"path": "hosts/algo-1/input/config/hyperparameters.json", **FILE}),
    "another host": ("file", {"path": "hosts/algo-2/model/weights", **FILE}),
    "the job": ("file", {"path": "job.json", **FILE}),
    "a link in the usage": ("link", {"path": "usage/algo-1.json", "target": "/etc/passwd"}),
    "a path that no file has": ("file", {"path": "hosts/algo-1/model/a\0b", **FILE}),
    "a path that is not UTF-8": ("file", {"path": "hosts/algo-1/model/\ud800", **FILE}),
    "a time that no file has": ("file", {"path": "hosts/algo-1/model/a", **FILE, "mtime": 1 << 80}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_host_writes_its_outputs_and_nothing_else(ends, name):
    kind, fields = REFUSED[name]
    ends.start()
    ends.send("append", b"a line\n", path="logs/algo-1.log")
    ends.send(kind, **fields)
    assert ends.end() == 1
    assert "cannot be received" in ends.until_event("failed")["failure"]["cause"]
    assert ends.folder.log("algo-1").read_text() == "a line\n"
    assert not ends.folder.log("algo-1").is_symlink()
    assert sorted(each.name for each in ends.folder.path.rglob("*")) == [
        "algo-1", "algo-1.log", "channels", "hosts", "logs", "usage",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b"1", b'{"event": []}', b'{"event": "ended"}', b'{"event": "alive", "descriptor": 1}']
)
def test_messages_that_are_not_events_fail_the_job(ends, content):
    ends.start()
    ends.send("message", content)
    assert ends.end() == 1
    assert "not an event" in ends.until_event("failed")["failure"]["cause"]


@pytest.mark.parametrize(
    "line", [b"A\0\0\n", b'{"kind": "Z", "size": 0}\n', b'{"kind": "file", "size": -1}\n', b"\n", b"[" * 60000 + b"\n"]
)
def test_bytes_that_are_no_frame_are_told_in_a_sentence_and_end_the_relay(ends, line):
    ends.start()
    os.write(ends.stream.fileno(), line)
    assert ends.end() == 1
    cause = ends.until_event("failed")["failure"]["cause"]
    assert cause.startswith("algo-1 is lost: what it sends cannot be received: ")
    assert "is not a frame: " in cause
    assert "\n" not in cause


def test_a_relay_reads_while_it_sends_and_ends_when_it_is_told(ends):
    """The host reads nothing, and writes more than the pipes hold."""
    checkpoints = ends.folder.host("algo-1") / "checkpoints"
    checkpoints.mkdir()
    (checkpoints / "weights").write_bytes(bytes(2 << 20))
    ends.relay._is_started = True
    ends.command(do="train")
    ends.start()
    for number in range(20):
        ends.send("file", bytes(200_000), path=f"hosts/algo-1/model/{number}", **FILE)
    until((ends.folder.host("algo-1") / "model" / "19").exists)
    ends.command(do="terminate", host="algo-1")
    threading.Thread(target=ends.read, daemon=True).start()
    # It was not started.
    assert ends.until_event("ended")["code"] == -signal.SIGTERM
    ends.send("message", b'{"event": "finished", "problems": [], "misplaced": ""}')
    assert ends.end() == 0


def test_a_host_that_waits_for_others_is_not_lost(ends):
    ends.start()
    assert ends.until_event("waiting")["message"] == "its machine"
    ends.send("hello", address="10.0.0.1", folder="/jobs/one")
    assert ends.until_event("waiting")["message"] == "the other hosts"
    ends.command(do="end")
    ends.until_event("finished")
    assert ends.end() == 0


def test_a_host_whose_machine_is_replaced_before_its_start_connects_again(tmp_path):
    keys = StreamKeys.create()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = Ends(tmp_path / "job", ListeningStream(keys, listener))
        ends.fleet.why_replaced = lambda host: f"{host} is replaced"
        addresses = []
        ends.fleet.write_sandbox = lambda _host, address: addresses.append(address)
        ends.start()
        for address in ("10.0.0.1", "10.0.0.2"):
            stream = connect(keys.host, listener.getsockname())
            send_frame(stream, "hello", address=address, folder="/jobs/one")
            until(lambda: addresses[-1:] == [address])  # noqa: B023 - called here
            stream.close()
            assert ends.until_event("log")["text"] == "algo-1 is replaced"
        ends.command(do="end")
        assert ends.end() == 0


def test_a_host_that_lost_its_relay_ends_with_0_for_the_relay_knows_more_of_it(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    lost = SimpleNamespace(read=lambda: b"", write=len, fileno=lambda: 0)
    assert remote_host.run((str(tmp_path / "job"),), lost) == 0
    assert capfd.readouterr().err == "scriptmode: the job's agent, or the network to it, is lost\n"


@pytest.mark.slow
def test_large_checkpoints_are_restored(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for number in range(1500):
        (checkpoints / f"part-{number}").write_bytes(os.urandom(100) + bytes(100_000))
    (tmp_path / "train.py").write_text(RESTORES)
    estimator = Estimator(
        entry_point=str(tmp_path / "train.py"), instance_type="elsewhere", instance_count=1,
        checkpoint_s3_uri=checkpoints.as_uri(), max_run=300,
    )  # fmt: skip
    job = estimator.fit()
    assert "restored 1500 150150000" in "\n".join(event.message for event in job.logs())


@pytest.mark.slow
def test_a_job_whose_model_did_not_arrive_whole_has_failed(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "jobs"))
    (tmp_path / "train.py").write_text(SAVES)
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="elsewhere", max_run=300)
    job = estimator.fit(wait=False)
    model = tmp_path / "jobs" / "jobs" / job.name / "hosts" / "algo-1" / "model"
    until((model / "part-0000").exists)
    for pid in {*processes_naming(job.name)} & {*processes_naming("run_host")}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(TrainingJobFailed, match="algo-1 is lost"):
        job.wait()
