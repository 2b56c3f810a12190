"""An engine whose hosts do not see the job's directory: each has a directory of its own, and a stream to its relay."""

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from scriptmode.engines import HostKind, ProcessEngine, ProcessFleet, StreamKeys, start_relay
from scriptmode_local._opt_ml.opt_ml import single_machine_cluster


class ElsewhereFleet(ProcessFleet):
    """Processes of this machine that could be anywhere."""

    def start_agents(self, serve):
        """Start a process for each host, and its relay; the sandboxes are written once all directories are known."""
        self.ports = self._ports.reserve(list(self.sandboxes))
        made = {host: tempfile.mkdtemp(prefix=f"elsewhere-{host}-") for host in self.sandboxes}
        self.places = {host: f"{folder}/jobs/{self._folder.name}" for host, folder in made.items()}
        self.sandboxes = {
            host: replace(sandbox, root=f"{self.places[host]}/hosts/{host}") for host, sandbox in self.sandboxes.items()
        }
        self.keys = StreamKeys.create()
        self.listeners = {host: self._tasks.open_listener("127.0.0.1") for host in self.sandboxes}
        return [self._start(host, listener) for host, listener in self.listeners.items()]

    def _start(self, host, listener):
        arguments = f"({self.places[host]!r},), {listener.getsockname()!r}, {self.keys.host!r}"
        code = f"import sys; from scriptmode.engines import run_host; sys.exit(run_host({arguments}))"
        subprocess.Popen((sys.executable, "-c", code), start_new_session=True)
        return start_relay((self._folder, self._job), host, listener, self.keys, self, self._tasks)

    def write_sandbox(self, host, address):
        """Write the sandbox and the file of the hosts' names."""
        sandboxes = {host: replace(each, base=Path(each.root)) for host, each in self.sandboxes.items()}
        content = single_machine_cluster(sandboxes, self.ports, "secret")
        self.sandboxes[host].prepare(self._job.request, content, copies_source=True)
        channels = Path(self.places[host], "channels")
        channels.mkdir(parents=True, exist_ok=True)
        (channels / "hosts").write_text("127.0.0.1 localhost algo-1 algo-2\n")
        return True


class ElsewhereEngine(ProcessEngine):
    """The engine of the instance type "elsewhere"."""

    def create_fleet(self, folder, job, tasks, inherited, host=""):
        """Return the hosts of a job."""
        return (ProcessFleet if host else ElsewhereFleet)(folder, job, tasks, inherited, only=host)


ELSEWHERE = HostKind("processes that could be anywhere", engine="elsewhere:ElsewhereEngine")
