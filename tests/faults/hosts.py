"""Hosts of a cluster as tests see them: files under ``/opt/ml``, ``train`` as process 1, signals, cuts, what is left."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from fakes.host_folders import write_files, write_host
from fakes.promptness import GENEROUS
from faults import processes
from faults.namespaces import INTERFACE, Namespaces
from processes.launchers import ENTRYPOINTS, Training, until

from scriptmode_runtime.contract import DEFAULT_PORTS

_PEERS = DEFAULT_PORTS["peers"]
#: The greeting and the welcome, each a segment of its own.
_WORDS = 2
_INIT = ("sh", "-c", '"$@" & wait $!; echo "train ended with $?"; exec sleep 600', "init")
_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
#: What ``/opt/ml`` of a host holds at most.
ROOM = "64m"


class Cluster:
    """Hosts algo-1 to algo-n, up for as long as the tests run."""

    def __init__(self, count, folder):
        self.namespaces = Namespaces(count, Path(folder).parent)
        self.hosts = [Host(name, self.namespaces, Path(folder)) for name in self.namespaces.hosts]

    def fresh(self, count, room=ROOM):
        """Give ``count`` hosts on which nothing ran yet: nothing is left of an earlier job."""
        for host in self.hosts:
            host.clear(room)
        return self.hosts[:count]

    def close(self):
        for host in self.hosts:
            host.end()
        self.namespaces.close()


class Host:
    """One host: what a platform sees of it."""

    def __init__(self, name, namespaces, folder):
        self.name = name
        self.ml = Path(namespaces.root(name)) / "opt" / "ml"
        self.run = None
        self._namespaces = namespaces
        self._folder = folder
        self._jobs = 0
        self._linked = True

    def end(self):
        if self.run:
            self.run.close()
            self.run = None

    def clear(self, room=ROOM):
        self.end()
        self.link(up=True)
        self._namespaces.fresh(self.name, room)

    def write(self, hosts, code, **hyperparameters):
        """Write the platform's files and the script's folder, as SageMaker does: no file of ours among them."""
        write_host(self.ml, self.name, hosts, **hyperparameters)
        path = self.ml / "input" / "config" / "resourceconfig.json"
        document = {**json.loads(path.read_text()), "network_interface_name": INTERFACE}
        path.write_text(json.dumps(document))
        write_files(self.ml / "code", code)
        (self.ml / "checkpoints").mkdir()

    def train(self, *, python=sys.executable, command=("-m", "scriptmode_runtime"), init=False, **variables):
        """Start ``train`` as process 1 of this host; with ``init`` below a process 1 that stays."""
        self._jobs += 1
        log = self._folder / f"{self.name}-{self._jobs}.log"
        env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        env.update(PYTHONPATH=str(ENTRYPOINTS), TF_CPP_MIN_LOG_LEVEL="2", **variables)
        start = [*self._namespaces.enter(self.name), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.run = Run(self.name, self.ml, log, [*start, *(_INIT if init else ()), python, *command], env)
        return self.run

    def link(self, *, up):
        if up != self._linked:
            self._namespaces.link(self.name, "up" if up else "down")
            self._linked = up

    def admitted(self):
        """Give how many other hosts this one's launcher let join: those it greeted and, once they proved themselves, welcomed."""
        sent = self._namespaces.run(
            self.name, 'ss --no-header --tcp --info state established "sport = :$1"', str(_PEERS)
        )
        return len([words for words in re.findall(r"data_segs_out:(\d+)", sent) if int(words) >= _WORDS])

    def vanish(self):
        """Lose the whole host at once, as a machine that loses its power: no word reaches the others."""
        self.link(up=False)
        self.run.kill()


class Run(Training):
    """One host's ``train`` and all processes below it."""

    def __init__(self, host, ml, log, words, env):
        self.host = host
        self.log = log
        self.base = ml
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                words, env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.pid = until(self._first, 10, lambda: f"train did not start on {host}: {self.output}")
        self.namespace = processes.namespace(self.pid)

    @property
    def ended(self):
        return self._process.poll() is not None

    @property
    def code(self):
        """Its exit code as a platform sees it: 128 and more for a signal."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def wait(self, seconds=GENEROUS):
        """Wait for its end; give its exit code."""
        until(lambda: self.ended, seconds, lambda: f"{self.host} did not end in {seconds} s:\n{self.output}")
        return self.code

    def says(self, text, seconds=GENEROUS):
        """Wait until the log holds a text."""
        until(lambda: text in self.output or self.ended, seconds, lambda: f"{self.host} is late:\n{self.output}")
        assert text in self.output, f"{self.host} does not say {text!r}:\n{self.output}"

    def processes(self):
        return [pid for pid in processes.running() if processes.namespace(pid) == self.namespace]

    def find(self, role):
        """Give the one process for which ``role(pid)`` holds."""
        found = until(
            lambda: [pid for pid in self.processes() if role(pid)], 30, lambda: f"{role} is not on {self.host}"
        )
        assert len(found) == 1, [processes.words(pid) for pid in found]
        return found[0]

    def signal(self, number, pid=None):
        """Send a signal to one of its processes; without one to ``train``."""
        os.kill(pid or self.pid, number)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self):
        self.kill()
        self._process.wait(600)

    def _first(self):
        """Find process 1 of the new namespace: the end of the chain nsenter, unshare, train."""
        assert self._process.poll() is None, self.output
        chain = [self._process.pid]
        while below := processes.children(chain[-1]):
            chain.append(below[0])
            if len(chain) == _CHAIN and processes.words(chain[-1])[:1] != ["unshare"]:
                return chain[-1]
        return None


#: nsenter, unshare, train.
_CHAIN = 3


def ended(runs, since, seconds):
    """Wait until all runs ended, at most ``seconds`` after ``since``; give for each host how long it took."""
    times = {}

    def over():
        for run in runs:
            if run.ended:
                times.setdefault(run.host, time.monotonic() - since)
        return len(times) == len(runs)

    until(
        over,
        since + seconds - time.monotonic(),
        lambda: "\n".join(f"--- {run.host} ({run.code})\n{run.output[-3000:]}" for run in runs),
    )
    return times
