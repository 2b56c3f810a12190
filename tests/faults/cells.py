"""Runs one cell of the matrix: a job, its fault, and what is to be true of every host afterwards."""

import os
import queue
import re
import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults import processes
from faults.hosts import ROOM, Cluster, ended
from faults.matrix import ANY, CUT, GONE, HANG_SECONDS, LONG_BOUND, STOPPED, TOLD_TO_STOP
from faults.memory import MemoryGroup
from processes.launchers import until

from scriptmode_runtime.contract import FAILURE_LIMIT

PROGRAMS = Path(__file__).parent / "programs"
_FOLDERS = ("model", "output/data", "checkpoints")
#: The volume of a host whose disk gets full, and what a process may take that runs out of memory.
_TINY, _LITTLE = "2m", 32 << 20
_AT_ONCE = (os.cpu_count() or 1) + 2
_SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP, "SIGTERM": signal.SIGTERM}


class Job:
    """One job of trainers without TensorFlow, in a cell's layout."""

    def __init__(self, cell, cluster):
        self.cell = cell
        self.hosts = cluster.fresh(cell.layout.hosts)
        self.target = self.hosts[cell.process.host]
        self.target.clear(_TINY if cell.fault.name == "disk full" else ROOM)
        self.name = f"faults-{uuid.uuid4().hex}"
        self._group = None
        names = [host.name for host in self.hosts]
        options = {"fault": cell.fault.name, "where": cell.process.trainer or next(iter(cell.layout.trainers))}
        if cell.process.task:
            options["servers"] = cell.process.task.split()[0]
        code = {"train.py": (PROGRAMS / "trainer.py").read_text()}
        for host in self.hosts:
            host.write(names, code, sagemaker_program="train.py", **options, **cell.layout.hyperparameters)

    def start(self):
        """Start it and wait until every trainer trains."""
        layout = self.cell.layout
        variables = {
            "TRAINING_JOB_NAME": self.name,
            "SCRIPTMODE_HOST_TIMEOUT_SECONDS": str(self.cell.host_timeout),
            "SCRIPTMODE_STOP_GRACE_SECONDS": "10",
        }
        if self.cell.fault is STOPPED:
            variables["SCRIPTMODE_HANG_SECONDS"] = str(HANG_SECONDS)
        self.runs = [host.train(python=layout.python, **variables) for host in self.hosts]
        for trainer, host in layout.trainers.items():
            self.runs[host].says(f"training as {trainer}")
        # Until a host was admitted its loss is not noticed.
        until(lambda: self.hosts[0].admitted() == len(self.hosts) - 1, LONG_BOUND)
        self.files = self._files()

    def inflict(self):
        """Do what goes wrong. Of a fault that is none, the job then comes to its end."""
        fault, target = self.cell.fault, self.target
        is_signal, starves = fault.name in _SIGNALS, fault.name == "out of memory"
        pid = self._process() if is_signal or starves else None
        self._since = time.monotonic()
        if fault is GONE:
            target.vanish()
        elif fault is CUT:
            target.link(up=False)
        elif is_signal:
            target.run.signal(_SIGNALS[fault.name], pid)
        else:
            if starves:
                self._starve(pid)
            self.tell("fault")
        if fault is STOPPED:
            self.tell("quiet")
        if not fault.code:
            self.tell("finish")

    def _process(self):
        run, process = self.target.run, self.cell.process
        return run.pid if process.label == "launcher" else run.find(process.is_it)

    def tell(self, word):
        for host in self.hosts:
            (host.ml / "input" / word).touch()

    def end(self):
        """Wait for the end of every host; return the seconds from the fault to the last one's."""
        stopped = self.cell.loses_its_host and self.cell.fault.name == "SIGSTOP"
        runs = [run for run in self.runs if not (stopped and run is self.target.run)]
        last = max(ended(runs, self._since, self.cell.fault.noticed + LONG_BOUND).values())
        if stopped:
            self.target.run.signal(signal.SIGCONT)
            self.target.run.wait(LONG_BOUND)
        return last

    def check(self):
        """Assert the outcome of every host, what is said of it, and that nothing is left or lost; give the exit code."""
        cell, codes = self.cell, {run.host: run.code for run in self.runs}
        code = cell.fault.code if cell.fault.code != ANY else self.runs[0].code
        for run in self.runs:
            told = f"{codes}\n{run.output[-3000:]}\n--- failure\n{run.failure}"
            assert run.code or not cell.fault.code, told
            if not (cell.loses_its_host and run is self.target.run):
                assert run.code == code, told
                self._check_failure(run, self.target.name)
        if cell.fault is CUT:
            self._check_failure(self.target.run, r"algo-\d")
        if cell.fault is STOPPED:
            self._check_stacks()
        if cell.fault is TOLD_TO_STOP:
            saved = [path.read_bytes() for host in self.hosts for path in (host.ml / "checkpoints").glob("saved by *")]
            assert saved == [b"whole" * 10_000] * len(cell.layout.trainers)
        until(lambda: not self._left(), 10, lambda: f"left: {[processes.words(pid) for pid in self._left()]}")
        assert self._files() == self.files, "files are lost"
        return code

    def close(self):
        for host in self.hosts:
            host.clear()
        if self._group:
            self._group.close()

    def _check_failure(self, run, host):
        fault = self.cell.fault
        line = fault.line.format(host=host, process=self.cell.process.label)
        assert re.fullmatch(line, run.failure.partition("\n")[0]), run.failure
        assert fault.more in run.failure
        assert len(run.failure) <= FAILURE_LIMIT

    def _check_stacks(self):
        """The log shows what every process did: which one was stopped, and where in Python the others were."""
        assert "stopped by a signal" in self.target.run.output, self.target.run.output
        logs = "\n".join(run.output for run in self.runs)
        for trainer in self.cell.layout.trainers:
            shown = rf'{trainer}, process \d+: .*\n((?!scriptmode:).*\n)*?  File "/opt/ml/code/train.py"'
            assert trainer == self.cell.process.trainer or re.search(shown, logs), logs

    def _starve(self, pid):
        try:
            self._group = MemoryGroup(_LITTLE)
        except OSError as error:
            pytest.skip(f"out of memory by the kernel needs control groups that can be made: {error}")
        self._group.add(pid)

    def _left(self):
        return [pid for pid in processes.running() if processes.variables(pid).get("TRAINING_JOB_NAME") == self.name]

    def _files(self):
        return {
            str(path): path.read_bytes()
            for host in self.hosts
            for folder in _FOLDERS
            for path in (host.ml / folder).glob("before the fault*")
        }


class Outcomes:
    """Runs cells, a few at once: most of them wait most of the time."""

    def __init__(self, cells, folder):
        self._clusters = queue.SimpleQueue()
        for number in range(_AT_ONCE):
            (folder / str(number)).mkdir()
            self._clusters.put(Cluster(max(cell.layout.hosts for cell in cells), folder / str(number)))
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._results = {cell.title: self._pool.submit(self._run, cell) for cell in cells}

    def of(self, cell):
        """Return a job's exit code and the seconds from its fault to the end of its last host.

        Raise what the cell raised. A cell that is asked for again, because it was late, is run again.
        """
        result = self._results.pop(cell.title, None) or self._pool.submit(self._run, cell)
        return result.result()

    def close(self):
        """Cancel the cells that have not started."""
        self._pool.shutdown(cancel_futures=True)
        while not self._clusters.empty():
            self._clusters.get().close()

    def _run(self, cell):
        cluster = self._clusters.get()
        job = None
        try:
            job = Job(cell, cluster)
            job.start()
            job.inflict()
            seconds = job.end()
            return job.check(), seconds
        finally:
            if job:
                job.close()
            self._clusters.put(cluster)
