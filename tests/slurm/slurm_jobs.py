"""Real jobs on a real cluster: plain Python scripts on two nodes."""

import json
import signal
import subprocess
from pathlib import Path

from fakes.local_jobs import ENDED, LocalJobs
from fakes.processes import until

from scriptmode import Slurm


class SlurmJobs(LocalJobs):
    """Starts jobs on the cluster, in a data directory that the nodes see."""

    instance_type = "slurm"

    def __init__(self, folder, cluster, *, hosts=2, **options):
        super().__init__(folder, **{"stop_grace": 5, **options})
        self.cluster = cluster
        self.hosts = hosts
        self.mounted_before = set()

    def open(self, **options):
        return Slurm(data_dir=self.data_dir, **options)

    def request(self, script, hosts=None, **fields):
        return super().request(script, hosts=hosts or self.hosts, **fields)

    def start(self, script, **fields):
        self.mounted_before = self.mounts_of_nodes()
        return super().start(script, **fields)

    def kill(self, name, label="agent", number=signal.SIGKILL):
        """Send a signal to a recorded process. Each node has its own numbers; the job's agent is on the first one."""
        listed = self.cluster.run("squeue", "--noheader", f"--jobs={self.number(name)}", "--format=%N").stdout.strip()
        nodes = self.cluster.run("scontrol", "show", "hostnames", listed).stdout.split()
        node = nodes[int(label.rpartition("-")[2]) - 1] if "-" in label else nodes[0]
        words = ("kill", f"-{int(number)}", str(self.pid(name, label)))
        subprocess.run((*self.cluster.machines.enter(node), *words), check=True, timeout=600)

    def number(self, name):
        """Slurm's number of a job."""
        return json.loads((self.job_folder(name).path / "engine.json").read_text())["job"]

    def completed_lines(self, name):
        """Wait for the end of a job that must complete; return the lines of its log."""
        self.completed(name)
        return self.lines(name)

    def remains(self, name):
        return [*super().remains(name), *self.mounted(name), *self.allocations(name)]

    def mounted(self, name):
        return self.mounts_of_nodes() - self.mounted_before

    def mounts_of_nodes(self):
        """The numbers of the channels' mounts on the nodes, which are on disks of their own: nothing there names a job."""
        tables = [Path(f"/proc/{holder}/mountinfo").read_text() for holder in self.cluster.machines.holders.values()]
        lines = [line for table in tables for line in table.splitlines()]
        return {line.split()[2] for line in lines if " - fuse.scriptmode " in line}

    def allocations(self, name):
        """What Slurm has of a job that has not ended, by its name: the directory may be gone, with the number."""
        listed = self.cluster.run("squeue", "--noheader", f"--name={name}", "--format=%i %T").stdout
        return listed.splitlines()

    def close(self):
        for summary in self.platform.list():
            if summary["TrainingJobStatus"] not in ENDED:
                self.platform.stop(summary["TrainingJobName"])
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.processes())
