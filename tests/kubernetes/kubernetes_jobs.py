"""Real jobs whose hosts are pods of a real cluster: plain Python scripts."""

import json
import signal
import sys
from contextlib import contextmanager

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import until
from kubernetes.configuration import MACHINE_IMAGE

from scriptmode_kubernetes._engine.pods import names_of

#: Sends a signal to the host's agent of a pod, and not to its starter.
_SIGNALS = r"""
for each in /proc/[0-9]*; do
    grep -q host_agent $each/cmdline && ! grep -q remote_host $each/cmdline && kill -{} ${{each##*/}} && exit
done
exit 1
"""
PRINTS = """
    import os, time
    print("up", flush=True)
    line = 0
    while not os.path.exists("/shared/{end}"):
        print("line", line, flush=True)
        line += 1
        time.sleep(0.1)
    print("lines", line, flush=True)
"""


class KubernetesJobs(LocalJobs):
    """Starts jobs on the cluster."""

    instance_type = "kubernetes"

    def __init__(self, folder, cluster, **options):
        super().__init__(folder, **{"stop_grace": 5, **options})
        self.cluster = cluster
        #: A directory that the scripts see as ``/shared``.
        self.shared = self.folder / "shared"
        self.shared.mkdir()

    def use(self, monkeypatch: pytest.MonkeyPatch, **settings):
        """Set the variables by which the jobs find the cluster, and other settings of their pods."""
        self.cluster.use(monkeypatch)
        volume = {"name": "shared", "hostPath": {"path": str(self.shared)}}
        mount = {"name": "shared", "mountPath": "/shared"}
        patch = {"spec": {"volumes": [volume], "containers": [{"name": "train", "volumeMounts": [mount]}]}}
        given = {"image": MACHINE_IMAGE, "agent_python": sys.executable, "patch": patch, **settings}
        monkeypatch.setenv("SCRIPTMODE_KUBERNETES", json.dumps(given))

    def request(self, script, *, image=MACHINE_IMAGE, **fields):
        """A request with an image, by default that of the machines."""
        request = super().request(script, **fields)
        request["AlgorithmSpecification"]["TrainingImage"] = image
        return request

    def pod(self, name, host="algo-1"):
        """The name of the pod of a host of a job."""
        return f"{names_of(self.job_folder(name)).name}-{host}"

    def message(self, name):
        """What the status of a job says."""
        return self.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]

    @contextmanager
    def quota(self, **hard):
        """Limit what the namespace may have meanwhile."""
        about = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
        self.cluster.apply({**about, "spec": {"hard": hard}})
        try:
            until(lambda: self.cluster.get("resourcequota", "few").get("status", {}).get("hard"))
            yield
        finally:
            self.cluster.kubectl("delete", "resourcequota", "few")

    def on_pod(self, name, host, container, script):
        """Run a shell script in a container of a host's pod."""
        words = ("exec", self.pod(name, host), f"--container={container}", "--", "sh", "-c", script)
        self.cluster.kubectl(*words)

    def release(self, name, host="algo-1"):
        """Create the file ``checkpoints/go`` on a host of a job, for which its script waits."""
        self.on_pod(name, host, "train", "touch /opt/ml/checkpoints/go")

    def kill(self, name, label="agent", number=signal.SIGKILL):
        """Send a signal to a process of a job: its agent is on this machine, those of the hosts are in the pods."""
        if label == "agent":
            super().kill(name, label, number)
        else:
            self.on_pod(name, label.rpartition(" ")[2], "agent", _SIGNALS.format(int(number)))

    def kill_host(self, name, host):
        """Kill the launcher of a host's script."""
        self.on_pod(name, host, "agent", "kill -9 $(cat /proc/$(cat /scriptmode/*/control/pid)/task/*/children)")

    def start_printing(self, *names):
        """Start jobs that print a line every tenth of a second until `end` with one of the names; return their names."""
        started = [self.start(PRINTS.format(end=name)) for name in names]
        for each in started:
            self.until_up(each)
        return started

    def end(self, name):
        """Let a job of `start_printing` end."""
        (self.shared / name).touch()

    def each_line_once(self, name):
        """Check that a job of `start_printing` completed with all its lines in order; return how many."""
        self.completed(name)
        lines = [line.partition(": ")[2] for line in self.lines(name)]
        count = int(next(line.split()[1] for line in lines if line.startswith("lines ")))
        assert [line for line in lines if line.startswith("line ")] == [f"line {number}" for number in range(count)]
        return count

    def remains(self, name):
        """What a job has left in the namespace."""
        selector = f"--selector={names_of(self.job_folder(name)).selector}"
        found = self.cluster.get("pods,services,secrets", selector)["items"]
        return [*super().remains(name), *(f"{each['kind']} {each['metadata']['name']}" for each in found)]

    def failed(self, name):
        """Wait for the end of a job that must fail; return the reason. Nothing may be left of it."""
        description = self.wait(name)
        assert description["TrainingJobStatus"] == "Failed", self.why(name)
        until(lambda: not self.remains(name))
        reason = self.platform.describe(name).failure_reason
        print(f"{name}: {self.statuses(name)}: {reason}")
        return reason
