"""Jobs on hosts that are containers, by the public call, and what Docker has of each."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

from fakes.container_jobs import LABEL, LISTS, listed
from fakes.local_jobs import unpacked
from processes.launchers import until

from scriptmode import Estimator
from scriptmode_local import LocalPlatform
from scriptmode_local._store.job_store import JobFolder

PROGRAMS = Path(__file__).parent / "programs"


class ContainerJob:
    """One job; ``fields`` are the `Estimator`'s, ``limits`` those of each container."""

    def __init__(self, data_dir, *, inputs=None, limits=None, **fields):
        platform = LocalPlatform(data_dir=data_dir, container_limits=limits)
        given = {"instance_count": 2, "instance_type": "local", "max_run": 900, **fields}
        self.job = Estimator(platform=platform, **given).fit(inputs, wait=False)
        self.folder = JobFolder(Path(data_dir) / "jobs" / self.job.name)

    def log(self):
        """Everything that the hosts said so far."""
        return "\n".join(f"{event.host}: {event.message}" for event in self.job.logs())

    def until_ended(self):
        """Wait for the end; return the status."""
        return until(lambda: self.job.ended and self.job.status, describe=self._last_words)

    def _last_words(self):
        """Return the last lines of each host, and what runs in its container."""
        lines = [self.job.secondary_status]
        for host in sorted({event.host for event in self.job.logs()}):
            lines += [f"{host}: {event.message}" for event in self.job.logs() if event.host == host][-8:]
        for container in self._listed(*LISTS[0], "--quiet"):
            lines += listed("top", container, "-eo", "pid,ppid,stat,wchan:20,args")
        return "\n".join(lines)

    def left(self):
        """Containers and networks of the job, whatever they do."""
        return [line for words in LISTS for line in self._listed(*words, "--quiet")]

    def delivered(self):
        """Path of the model's archive."""
        return Path(unquote(urlparse(self.job.model_data).path))

    def records(self):
        """What ``recorded.py`` wrote, by host and rank."""
        files = unpacked(self.delivered().with_name("output.tar.gz"))
        return {name[: -len(".json")]: json.loads(text) for name, text in files.items() if name.endswith(".json")}

    def close(self):
        """End it, if it still runs."""
        self.job.stop()

    def _listed(self, *words):
        return listed(*words, "--filter", f"label={LABEL}={self.folder.label}")
