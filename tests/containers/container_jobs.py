"""Jobs on hosts that are containers: by the public call, and what Docker has of them."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

from containers.conftest import docker
from fakes.local_jobs import unpacked

from scriptmode import Estimator
from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.store import JobFolder

PROGRAMS = Path(__file__).parent / "programs"
LABEL = "scriptmode.job"


class ContainerJob:
    """One job; ``fields`` are the `Estimator`'s."""

    def __init__(self, data_dir, *, inputs=None, **fields):
        platform = LocalPlatform(data_dir=data_dir)
        given = {"instance_count": 2, "instance_type": "local", "max_run": 300, **fields}
        self.job = Estimator(platform=platform, **given).fit(inputs, wait=False)
        self.folder = JobFolder(Path(data_dir) / "jobs" / self.job.name)

    def log(self):
        """Everything that the hosts said so far."""
        return "\n".join(f"{event.host}: {event.message}" for event in self.job.logs())

    def container(self, host):
        """Docker's name of a host."""
        (found,) = [name for name in self.left("ps", "--format", "{{.Names}}") if f"-{host}-" in name]
        return found

    def left(self, *words):
        """What Docker has of the job: ``ps`` and ``network ls`` with the words that say how it is listed."""
        listed = docker(*words, "--filter", f"label={LABEL}={self.folder.label}")
        assert listed.returncode == 0, listed.stdout
        return listed.stdout.split()

    def everything_left(self):
        """Containers and networks of the job, whatever they do."""
        return self.left("ps", "--all", "--quiet") + self.left("network", "ls", "--quiet")

    def delivered(self):
        """Path of the model's archive."""
        return Path(unquote(urlparse(self.job.model_data).path))

    def records(self):
        """What ``recorded.py`` wrote, by host and rank."""
        files = unpacked(self.delivered().with_name("output.tar.gz"))
        return {name.removesuffix(".json"): json.loads(text) for name, text in files.items() if text}

    def close(self):
        """End it, if it still runs."""
        self.job.stop()
