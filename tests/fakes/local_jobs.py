"""Real jobs of the local platform: requests written by hand, real agents, plain Python scripts."""

import io
import shutil
import tarfile
import textwrap
from pathlib import Path

from fakes.processes import processes_naming, until

from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode_runtime.contract import encode

ENDED = ("Completed", "Failed", "Stopped")
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"


def channel(name, uri, distribution="FullyReplicated", **fields):
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": distribution}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, **fields}


def damaged_manifest(folder):
    """A channel whose data turn out to be missing while the job stages them: only then a manifest is read."""
    (folder / "manifest").write_text("[]")
    found = channel("train", f"file://{folder}/manifest")
    found["DataSource"]["S3DataSource"]["S3DataType"] = "ManifestFile"
    return found


def request_for(name, *, source="", hosts=1, channels=(), hyperparameters=None, max_run=60, output="file:///out"):
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


class LocalJobs:
    """Starts jobs in a data directory of its own and knows what they left."""

    def __init__(self, folder, **platform):
        self.folder = Path(folder)
        self.data_dir = self.folder / "data dir"
        self.platform = LocalPlatform(data_dir=self.data_dir, **platform)
        self.count = 0

    def source(self, script, **files):
        """Store a script (and files) as the source archive of ``sagemaker_submit_directory``."""
        content = {"train.py": textwrap.dedent(script), **files}
        archive = self.folder / f"source-{self.count}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for name, text in content.items():
                body = text if isinstance(text, bytes) else text.encode()
                member = tarfile.TarInfo(name)
                member.size = len(body)
                tar.addfile(member, io.BytesIO(body))
        return f"file://{archive}"

    def request(self, script, **fields):
        self.count += 1
        output = f"file://{self.data_dir}/jobs"
        return request_for(f"job-{self.count}", source=self.source(script), **{"output": output, **fields})

    def start(self, script, **fields):
        request = self.request(script, **fields)
        self.platform.create(request)
        return request["TrainingJobName"]

    def wait(self, name, seconds=120.0):
        return until(lambda: self.ended(name), seconds)

    def ended(self, name):
        description = self.platform.describe(name)
        return description if description["TrainingJobStatus"] in ENDED else None

    def start_a_long_download(self):
        """Start a job that is busy with its input for longer than any test; give its name once it is."""
        (self.folder / "in").mkdir()
        with (self.folder / "in" / "big").open("wb") as file:
            # As much as is not refused: what is larger than the disk is not begun.
            file.truncate(shutil.disk_usage(self.folder).free * 3 // 4)
        name = self.start("pass", channels=[channel("train", f"file://{self.folder}/in")])
        until(lambda: self.platform.describe(name)["SecondaryStatus"] == "Downloading")
        return name

    def run(self, script, **fields):
        return self.wait(self.start(script, **fields))

    def lines(self, name):
        return [f"{event.host}: {event.message}" for event in self.platform.log_events(name, follow=False)]

    def until_line(self, name, text):
        return until(lambda: [line for line in self.lines(name) if text in line])

    def job_folder(self, name):
        return JobFolder(self.data_dir / "jobs" / name)

    def delete(self, name):
        """Remove a job's folder as a user does, while an agent may be removing files itself."""
        until(lambda: shutil.rmtree(self.job_folder(name).path, ignore_errors=True) or not self.exists(name))

    def exists(self, name):
        return self.job_folder(name).path.exists()

    def agent(self, name):
        return self.job_folder(name).read_processes()["agent"]

    def processes(self):
        """Every process that belongs to a host of any of these jobs."""
        return processes_naming(f"SAGEMAKER_BASE_DIR={self.data_dir}/jobs/")

    def model(self, description):
        """The files of a job's model.tar.gz."""
        return unpacked(description["ModelArtifacts"]["S3ModelArtifacts"][len("file://") :])

    def close(self):
        """Stop what runs; nothing may be left."""
        self.platform = LocalPlatform(data_dir=self.data_dir)
        for summary in self.platform.list():
            self.platform.stop(summary["TrainingJobName"])
        until(lambda: all(job["TrainingJobStatus"] in ENDED for job in self.platform.list()))
        until(lambda: not self.processes())
        # A job has ended before its agent has tidied up.
        until(lambda: not processes_naming(f"{self.data_dir}/jobs/"))


def unpacked(path):
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() if member.isreg() else None for member in tar.getmembers()}
