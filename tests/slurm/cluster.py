"""``python -m tests.slurm.cluster COMMAND ...``: run a command with a real Slurm cluster on one machine.

Of this machine's ``/tmp`` the nodes see the working directory alone; everything else is shared.

slurmctld, slurmdbd, MariaDB and munge run as the machine ``controller``, slurmd on each node
(``fakes.machines``), with the settings of ``slurm.configuration``. It needs root and Debian's packages, which
``.ci/packages`` installs if they are missing. Slurm's commands find the cluster by the variable ``SLURM_CONF``.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

# This directory's parent is on the path of the tests alone.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fakes.machines import CONTROLLER, ENVIRONMENT, Machines, run_with
from fakes.processes import until
from slurm import configuration
from slurm.configuration import GPUS, NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

_PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "sbatch", "ip", "unshare", "nsenter")
_CHECKOUT = Path(__file__).parents[2]
_CONTROLLER_SCRIPT = """
mkdir -p "$folder/own/state" /etc/slurm
mount --bind "$folder" /etc/slurm
"""
_NODE_SCRIPT = f"""
mkdir -p "$folder/devices/$0"
for number in $(seq 0 {GPUS - 1}); do
    mknod -m 666 "$folder/devices/$0/gpu$number" c 1 3
done
"""
_START_SECONDS = 600
_MARIADB = (
    "--no-defaults", "--user=root", "--skip-networking", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
)  # fmt: skip


def why_not() -> str:
    """Return why this machine can have no cluster; "" if it can. Debian's packages are installed first."""
    if os.geteuid() != 0:
        return "a Slurm cluster of namespaces needs root"
    if _missing():
        subprocess.run([_CHECKOUT / ".ci" / "packages", "all"], check=False)
    return f"a Slurm cluster needs {', '.join(_missing())}; run .ci/packages all" if _missing() else ""


def _missing() -> list[str]:
    return [program for program in _PROGRAMS if not shutil.which(program, path=ENVIRONMENT["PATH"])]


class Cluster:
    """A running cluster. ``environment`` makes Slurm's commands ask it, on this machine and in its jobs.

    Args:
        shared: Folders of this machine's ``/tmp`` that the nodes see.
        nodes: Names of the nodes.
    """

    def __init__(self, *shared: str | os.PathLike[str], nodes: Sequence[str] = NODES) -> None:
        # Of a killed run it stays in the folder for temporary files, and nothing else.
        self.folder = Path(tempfile.mkdtemp(prefix="scriptmode-slurm-"))
        self.folder.chmod(0o755)  # also other users' commands read slurm.conf and reach munge
        for name in ("munge", "log", "own", "devices"):
            (self.folder / name).mkdir()
        self.environment = {**ENVIRONMENT, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.nodes = nodes
        self.machines = Machines(self.folder, nodes, *shared, scripts=(_CONTROLLER_SCRIPT, _NODE_SCRIPT, ""))
        self.processes, self.kill, self.lose = self.machines.processes, self.machines.kill, self.machines.lose
        try:
            configuration.write(self.folder, self.machines.network, nodes)
            self._start()
        except BaseException:
            self.close()
            raise

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the variables by which Slurm's commands of this process find the cluster."""
        monkeypatch.setenv("SLURM_CONF", self.environment["SLURM_CONF"])
        # The nodes have a /tmp of their own, without the directory of this run.
        monkeypatch.delenv("TMPDIR", raising=False)

    def run(self, *argv: str, user: str = "", check: bool = True, **settings) -> subprocess.CompletedProcess:
        """Run a command on this machine, as ``user`` if given; what it wrote is in ``stdout`` and ``stderr``."""
        before = (
            ("setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups") if user else ()
        )
        settings = {"capture_output": True, "text": True, "env": self.environment, **settings}
        return subprocess.run([*before, *argv], check=check, **settings)

    def submit(self, script: str, *options: str, **settings) -> str:
        """Submit a shell script; return the job's number. Its output is lost unless ``options`` name a file."""
        options = ("--parsable", "--output=/dev/null", *options)
        done = self.run("sbatch", *options, input=f"#!/bin/sh\n{script}\n", cwd="/", **settings)
        return done.stdout.strip().partition(";")[0]

    def job(self, number: str) -> dict[str, str]:
        """Return the fields of ``scontrol show job``."""
        return fields(self.run("scontrol", "show", "job", "--oneliner", number).stdout)

    def node(self, name: str) -> dict[str, str]:
        """Return the fields of ``scontrol show node``."""
        return fields(self.run("scontrol", "show", "node", "--oneliner", name).stdout)

    def account(self, number: str, *names: str) -> list[str]:
        """Return what accounting has of a job, without its steps."""
        asked = ("--noheader", "--parsable2", "--allocations", "--duplicates", f"--format={','.join(names)}")
        lines = self.run("sacct", *asked, f"--jobs={number}").stdout.splitlines()
        return lines[-1].split("|") if lines else []

    def step_codes(self, number: str) -> dict[str, list[str]]:
        """Return the exit codes that accounting has of a job's steps, by their names."""
        asked = ("--noheader", "--parsable2", "--format=JobName,ExitCode", f"--jobs={number}")
        found: dict[str, list[str]] = {}
        for line in self.run("sacct", *asked).stdout.splitlines():
            name, _, code = line.partition("|")
            found.setdefault(name, []).append(code)
        return found

    def reaches(self, number: str, *states: str, seconds: float = 600) -> dict[str, str]:
        """Wait until a job is in one of the states; return its fields."""

        deadline = time.monotonic() + seconds
        while (job := self.job(number))["JobState"] not in states:
            assert time.monotonic() < deadline, f"job {number} is not {' or '.join(states)} after {seconds} s: {job}"
            time.sleep(0.1)
        return job

    # Faults

    def start_slurmd(self, node: str) -> None:
        """Start a node's daemon, again after ``kill(node, "slurmd")``, and wait until the node answers."""
        self._daemon(node, "slurmd", "-D")
        self.resume(node)

    def restore(self, node: str) -> None:
        """Have a lost node again."""
        self.machines.link(node, up=True)
        self.start_slurmd(node)

    def restart_slurmctld(self) -> None:
        """Restart the controller's daemon. After SIGKILL it would not know the jobs of the last 5 s."""
        self.kill(CONTROLLER, "slurmctld", signal.SIGTERM)
        self.start_slurmctld()

    def start_slurmctld(self) -> None:
        """Start the controller's daemon, and wait until it answers."""
        self._daemon(CONTROLLER, "slurmctld", "-D")
        self._await("scontrol", "ping")

    def start_munged(self) -> None:
        """Start the daemon that authenticates all others, again after ``kill(CONTROLLER, "munged")``."""
        munge = self.folder / "munge"
        files = [f"--{name}-file={munge / name}" for name in ("key", "log", "pid", "seed")]
        self._daemon(CONTROLLER, "munged", "--foreground", "--force", f"--socket={munge / 'socket'}", *files)

    def set_node(self, node: str, state: str) -> None:
        """Set the state of a node: DOWN ends its jobs with NODE_FAIL (or requeues them), DRAIN lets them end."""
        self.run("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test")

    def resume(self, node: str) -> None:
        """Set a node up, whatever happened to it, and wait until it accepts jobs."""
        usable = ("IDLE", "MIXED", "ALLOCATED")

        def up() -> bool:
            if self.node(node)["State"] in usable:
                return True
            # Refused for a node that is up or that does not answer yet.
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
            return self.node(node)["State"] in usable

        until(up, _START_SECONDS)

    def preempt(self, *options: str) -> str:
        """Submit a job that needs both nodes whole to ``urgent``; return its number. ``scancel`` it afterwards.

        The grace of those that it preempts ends at the check of time limits after it, which comes every 30 s.
        """
        return self.submit("sleep 600", "--partition=urgent", f"--nodes={len(self.nodes)}", "--exclusive", *options)

    def start_now(self, number: str) -> None:
        """Let a requeued job start before its wait is over; one that has started by now goes on.

        A start in the second in which the node ended the first run fails: "Job N already killed, do not launch batch
        job" in slurmd's log, and the job is FAILED with exit code 1:0.
        """
        self.run("scontrol", "update", f"JobId={number}", "StartTime=now+2", check=False)

    def cancel_all(self) -> None:
        """End every job, and wait until the nodes are free and up."""
        self.run("scancel", "--user=root")
        self.run("scancel", f"--user={configuration.OTHER_USER}")
        until(lambda: not self.run("squeue", "--noheader").stdout, _START_SECONDS)
        for node in self.nodes:
            self.resume(node)

    def close(self) -> None:
        """End everything; nothing is left of it."""
        try:
            self.machines.close()
        finally:
            shutil.rmtree(self.folder)

    def _start(self) -> None:
        """Start the daemons in the order in which they need each other."""
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        self.start_munged()
        data, socket = self.folder / "own" / "mariadb", self.folder / "own" / "mariadb.socket"
        self.run(*self.machines.enter(CONTROLLER), "mariadb-install-db", *_MARIADB, f"--datadir={data}", "--skip-test-db",
                 "--auth-root-authentication-method=normal", cwd="/")  # fmt: skip
        self._daemon(CONTROLLER, "mariadbd", *_MARIADB, f"--datadir={data}", f"--socket={socket}")
        seen = self.machines.root(CONTROLLER)
        until(lambda: (munge / "socket").exists() and Path(f"{seen}{socket}").exists(), _START_SECONDS)
        # slurmdbd has no setting for MariaDB's socket; the client library has this variable.
        self._daemon(CONTROLLER, "slurmdbd", "-D", MYSQL_UNIX_PORT=str(socket))
        self._await("sacctmgr", "show", "cluster")
        self.run("sacctmgr", "--immediate", "load", f"file={self.folder / 'accounts'}")
        self.start_slurmctld()
        for node in self.nodes:
            self._daemon(node, "slurmd", "-D")
        for node in self.nodes:
            self.resume(node)

    def _await(self, *argv: str) -> None:
        """Repeat a command until it succeeds."""
        deadline = time.monotonic() + _START_SECONDS
        while (done := self.run(*argv, check=False)).returncode:
            assert time.monotonic() < deadline, f"{argv} after {_START_SECONDS} s: {done.stderr}"
            time.sleep(0.05)

    def _daemon(self, machine: str, program: str, *options: str, **variables: str) -> None:
        """Start a daemon; what it writes before its log is open is in ``log/PROGRAM.out``."""
        log = self.folder / "log" / f"{program}.out"
        variables = {"SLURM_CONF": self.environment["SLURM_CONF"], **variables}
        self.machines.start(machine, program, *options, log=log, **variables)


def fields(line: str) -> dict[str, str]:
    """Return the fields of a line of ``scontrol --oneliner``: ``Name=value`` each; only values have blanks."""
    return dict(re.findall(r"([A-Z][\w:/]*)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)", line))


if __name__ == "__main__":
    sys.exit(run_with(Cluster, why_not, sys.argv[1:]))
