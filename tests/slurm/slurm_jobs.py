"""Real jobs on a real cluster: plain Python scripts on two nodes."""

import json

from fakes.local_jobs import ENDED, LocalJobs
from fakes.processes import until

from scriptmode import Slurm

#: Seconds in which a job begins and ends on a busy machine.
SECONDS = 120


class SlurmJobs(LocalJobs):
    """Starts jobs on the cluster, in a data directory that the nodes see."""

    def __init__(self, folder, cluster, **options):
        super().__init__(folder)
        self.cluster = cluster
        self.platform = Slurm(data_dir=self.data_dir, **{"stop_grace": 5, **options})

    def request(self, script, hosts=2, instance_type="slurm", **fields):
        request = super().request(script, hosts=hosts, **fields)
        request["ResourceConfig"]["InstanceType"] = instance_type
        return request

    def number(self, name):
        """Slurm's number of a job."""
        return json.loads((self.job_folder(name).path / "engine.json").read_text())["job"]

    def until_lines(self, name, text, count=2, seconds=SECONDS):
        """Wait until as many lines of a job's log have the text, one of each host; return them."""

        def found():
            assert not self.ended(name), self.why(name)
            lines = [line for line in self.lines(name) if text in line]
            return lines if len(lines) >= count else None

        return until(found, seconds)

    def wait(self, name, seconds=SECONDS):
        return until(lambda: self.ended(name), seconds)

    def completed(self, name, seconds=SECONDS):
        """Wait for the end of a job that must complete; return the lines of its log."""
        description = self.wait(name, seconds)
        assert description["TrainingJobStatus"] == "Completed", self.why(name)
        return self.lines(name)

    def why(self, name):
        """What a test shows of a job that ended otherwise than it should."""
        description = self.platform.describe(name)
        return "\n".join(
            [str(description.get("FailureReason")), *self.lines(name), self.job_folder(name).agent_log.read_text()]
        )

    def statuses(self, name):
        return [each["Status"] for each in self.platform.describe(name)["SecondaryStatusTransitions"]]

    def steps(self, name):
        """The steps of a job that Slurm has not ended, without its batch step."""
        listed = self.cluster.run("squeue", "--steps", "--noheader", "--format=%i %j").stdout.split("\n")
        return [line for line in listed if line.startswith(f"{self.number(name)}.") and ".batch" not in line]

    def close(self):
        for summary in self.platform.list():
            if summary["TrainingJobStatus"] not in ENDED:
                self.platform.stop(summary["TrainingJobName"])
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.processes())
