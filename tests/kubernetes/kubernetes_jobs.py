"""Real jobs whose hosts are pods of a real cluster: plain Python scripts."""

import json
import sys

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import until
from kubernetes.configuration import MACHINE_IMAGE


class KubernetesJobs(LocalJobs):
    """Starts jobs on the cluster."""

    instance_type = "kubernetes"

    def __init__(self, folder, cluster, **options):
        super().__init__(folder, **{"stop_grace": 5, **options})
        self.cluster = cluster

    def use(self, monkeypatch: pytest.MonkeyPatch, **settings):
        """Set the variables by which the jobs find the cluster, and other settings of their pods."""
        self.cluster.use(monkeypatch)
        given = {"image": MACHINE_IMAGE, "agent_python": sys.executable, **settings}
        monkeypatch.setenv("SCRIPTMODE_KUBERNETES", json.dumps(given))

    def request(self, script, **fields):
        """A request with the image of the machines."""
        request = super().request(script, **fields)
        request["AlgorithmSpecification"]["TrainingImage"] = MACHINE_IMAGE
        return request

    def pod(self, name, host="algo-1"):
        """The name of the pod of a host of the only job."""
        found = self.cluster.get("pods", f"--selector=scriptmode/host={host}")["items"]
        return found[0]["metadata"]["name"]

    def remains(self, name):
        """What the jobs have left in the namespace."""
        found = self.cluster.get("pods,services,secrets", "--selector=scriptmode/job")["items"]
        return [*super().remains(name), *(f"{each['kind']} {each['metadata']['name']}" for each in found)]

    def statuses(self, name):
        return [each["Status"] for each in self.platform.describe(name).response["SecondaryStatusTransitions"]]

    def failed(self, name):
        """Wait for the end of a job that must fail; return the reason. Nothing may be left of it."""
        description = self.wait(name)
        assert description["TrainingJobStatus"] == "Failed", self.why(name)
        until(lambda: not self.remains(name))
        reason = self.platform.describe(name).failure_reason
        print(f"{name}: {self.statuses(name)}: {reason}")
        return reason
