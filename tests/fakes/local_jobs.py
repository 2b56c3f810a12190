"""Real jobs of the local platform: requests written by hand, real agents, plain Python scripts."""

import os
import shutil
import signal
import tarfile
import textwrap
from pathlib import Path

from fakes.archives import packed
from fakes.processes import processes_naming, until
from fakes.promptness import GENEROUS

from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.job_request import ABSENT
from scriptmode_local import LocalPlatform
from scriptmode_local._data import mounts
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder
from scriptmode_runtime.contract import encode

ENDED = ("Completed", "Failed", "Stopped")
RESOURCES = {"InstanceType": "local_process", "InstanceCount": 1}
REQUEST = parse_request({"TrainingJobName": "job", "ResourceConfig": RESOURCES})
JOB = Job(REQUEST, "arn", "us-east-1", "/usr/bin/python3", 120.0)
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
#: Counts ten steps, each once: a run goes on from the checkpoint of the one before.
COUNTS = """
    import pathlib, signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    saved = pathlib.Path("/opt/ml/checkpoints/step")
    first = int(saved.read_text()) if saved.exists() else 0
    print("from", first, flush=True)
    for step in range(first, 10):
        print("step", step, flush=True)
        saved.with_name("draft").write_text(str(step + 1))
        saved.with_name("draft").rename(saved)
        time.sleep(0.2 if first else 4)
"""


def channel(name, uri, distribution="FullyReplicated", **fields):
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": distribution}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, **fields}


def damaged_manifest(folder):
    """A channel whose data turn out to be missing while the job stages them: only then a manifest is read."""
    (folder / "manifest").write_text("[]")
    found = channel("train", f"file://{folder}/manifest")
    found["DataSource"]["S3DataSource"]["S3DataType"] = "ManifestFile"
    return found


def request_for(name, *, source="", hosts=1, channels=(), hyperparameters=None, max_run=600, output="file:///out"):
    """A CreateTrainingJob request as a client would write it."""
    script_mode = {"sagemaker_program": "train.py", "sagemaker_submit_directory": source, **(hyperparameters or {})}
    request = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/test",
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "HyperParameters": {key: encode(value) for key, value in script_mode.items()},
        "OutputDataConfig": {"S3OutputPath": output},
        "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": hosts, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": max_run},
    }
    if channels:
        request["InputDataConfig"] = list(channels)
    return request


def put(request, path, value):
    """Put a value at a path of a request, such as ``InputDataConfig.0.ChannelName``; ``ABSENT`` takes out what is there."""
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in parents:
        request = request.setdefault(part, {}) if isinstance(request, dict) else request[part]
    if value is ABSENT:
        del request[last]
    else:
        request[last] = value


#: Saves a model of the host's name when it is told to stop.
SAVES = """
    import os, signal, sys, time
    def save(*_):
        host = os.environ["SM_CURRENT_HOST"]
        with open(os.path.join(os.environ["SM_MODEL_DIR"], host), "w") as file:
            file.write("in time")
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    print("up", flush=True)
    time.sleep(600)
"""
#: Ignores SIGTERM, and makes its output directory again whenever it is removed.
KEEPS_WRITING = """
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = os.environ["SM_OUTPUT_DATA_DIR"]
    print("up", flush=True)
    while True:
        os.makedirs(folder, exist_ok=True)
        time.sleep(0.01)
"""


class LocalJobs:
    """Starts jobs in a data directory of its own and knows what they left. A subclass does so on hosts of another kind.

    Args:
        folder: Directory of all jobs, which their hosts' machines see.
        platform: Options of the platform.
    """

    instance_type = "local_process"

    def __init__(self, folder, **platform):
        self.folder = Path(folder)
        self.data_dir = self.folder / "data dir"
        self.platform = self.open(**platform)
        self.count = 0

    def open(self, **options):
        """Return a platform of these jobs with other options."""
        return LocalPlatform(data_dir=self.data_dir, **options)

    def estimator_arguments(self):
        """Return the arguments of an `Estimator` that choose these hosts."""
        return {"instance_type": self.instance_type}

    def source(self, script, **files):
        """Store a script (and files) as the source archive of ``sagemaker_submit_directory``."""
        content = {"train.py": textwrap.dedent(script), **files}
        archive = self.folder / f"source-{self.count}.tar.gz"
        archive.write_bytes(packed(content))
        return f"file://{archive}"

    def request(self, script, *, more=None, files=None, metrics=None, **fields):
        """A request; ``more`` is put in the place of its fields, ``files`` beside the script, ``metrics`` are regexes."""
        self.count += 1
        output = f"file://{self.data_dir}/jobs"
        source = self.source(script, **(files or {}))
        request = request_for(f"job-{self.count}", source=source, **{"output": output, **fields})
        request["ResourceConfig"]["InstanceType"] = self.instance_type
        if metrics:
            definitions = [{"Name": key, "Regex": regex} for key, regex in metrics.items()]
            request["AlgorithmSpecification"]["MetricDefinitions"] = definitions
        return {**request, **(more or {})}

    def start(self, script, *, grace=None, **fields):
        """Start a job, with another grace than the platform's if given; return its name."""
        request = self.request(script, **fields)
        (self.platform if grace is None else self.open(stop_grace=grace)).create(request)
        return request["TrainingJobName"]

    def wait(self, name, seconds=GENEROUS):
        return until(lambda: self.ended(name), seconds)

    def ended(self, name):
        description = self.platform.describe(name).response
        return description if description["TrainingJobStatus"] in ENDED else None

    def statuses(self, name):
        """The secondary statuses that a job has had, in order."""
        return [each["Status"] for each in self.platform.describe(name).response["SecondaryStatusTransitions"]]

    def start_a_long_download(self):
        """Start a job that is busy with its input for longer than any test; give its name once it is."""
        (self.folder / "in").mkdir()
        with (self.folder / "in" / "big").open("wb") as file:
            # As much as is not refused: what is larger than the disk is not begun.
            file.truncate(shutil.disk_usage(self.folder).free * 3 // 4)
        name = self.start("pass", channels=[channel("train", f"file://{self.folder}/in")])
        until(lambda: self.platform.describe(name).response["SecondaryStatus"] == "Downloading")
        return name

    def run(self, script, **fields):
        return self.wait(self.start(script, **fields))

    def lines(self, name):
        return [f"{event.host}: {event.message}" for event in self.platform.log_events(name, follow=False)]

    def until_line(self, name, text):
        return until(lambda: [line for line in self.lines(name) if text in line])

    def until_up(self, name, text="up"):
        """Wait until each host has written a line with the text; return these lines."""
        hosts = self.platform.describe(name).response["ResourceConfig"]["InstanceCount"]

        def found():
            assert not self.ended(name), self.why(name)
            lines = [line for line in self.lines(name) if text in line]
            return lines if len({line.partition(":")[0] for line in lines}) == hosts else None

        return until(found)

    def completed(self, name):
        """Wait for the end of a job that must complete; return its description."""
        description = self.wait(name)
        assert description["TrainingJobStatus"] == "Completed", self.why(name)
        return description

    def job_folder(self, name):
        return JobFolder(self.data_dir / "jobs" / name)

    def delete(self, name):
        """Remove a job's folder as a user does, while an agent may be removing files itself."""
        until(lambda: shutil.rmtree(self.job_folder(name).path, ignore_errors=True) or not self.exists(name))

    def exists(self, name):
        return self.job_folder(name).path.exists()

    def agent(self, name):
        return self.job_folder(name).read_processes()["agent"]

    def pid(self, name, label):
        """Wait until a process of a job is recorded, such as ``algo-1`` or ``agent of algo-1``; return its number."""
        return until(lambda: self.job_folder(name).read_processes().get(label)).pid

    def kill(self, name, label="agent", number=signal.SIGKILL):
        """Send a signal to a recorded process of a job, by default to its agent."""
        os.kill(self.pid(name, label), number)

    def release(self, name, host="algo-1"):
        """Create the file ``checkpoints/go`` on a host of a job, for which its script waits."""
        (self.job_folder(name).host(host) / "checkpoints" / "go").touch()

    def kill_host(self, name, host):
        """Kill a host of a job with all that runs on it, from outside."""
        self.kill(name, host)

    def processes(self, name=""):
        """Every process that belongs to a host of a job, or of any of these jobs."""
        return processes_naming(f"SAGEMAKER_BASE_DIR={self.data_dir}/jobs/{name}{'/' if name else ''}")

    def remains(self, name):
        """What a job has outside its directory: processes, those of its agents too, and mounts."""
        folder = self.job_folder(name).path
        found = [pid for end in "/\0" for pid in processes_naming(f"{folder}{end}")]
        return [*found, *self.mounted(name)]

    def mounted(self, name):
        """The channels of a job that are mounted on its hosts' machines."""
        return mounts.mounted_below(self.job_folder(name).path)

    def why(self, name):
        """What a test shows of a job that ended otherwise than it should."""
        reason = self.platform.describe(name).failure_reason
        return "\n".join([reason, *self.lines(name), self.job_folder(name).agent_log.read_text()])

    def model(self, description):
        """The files of a job's model.tar.gz."""
        return unpacked(description["ModelArtifacts"]["S3ModelArtifacts"][len("file://") :])

    def close(self):
        """Stop what runs; nothing may be left."""
        self.platform = self.open()
        for summary in self.platform.list():
            self.platform.stop(summary["TrainingJobName"])
        until(lambda: all(job["TrainingJobStatus"] in ENDED for job in self.platform.list()))
        until(lambda: not self.processes())
        # A job has ended before its agent has tidied up.
        until(lambda: not processes_naming(f"{self.data_dir}/jobs/"))


def unpacked(path):
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() if member.isreg() else None for member in tar.getmembers()}
