"""The fake Slurm answers as a real cluster does: the same questions, the same fields, states, texts and exit codes."""

import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from fakes.processes import until
from fakes.slurm import FakeSlurm
from slurm.cluster import fields

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

#: What differs between two clusters, runs or machines.
_VALUES = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\bjob (id )?\d+\b", re.IGNORECASE), "job N"),
    (re.compile(r"^\d+(?=\||\+|$)", re.MULTILINE), "N"),
    (re.compile(r"using \d+ processors"), "using P processors"),
)
_JOB_FIELDS = "JobName UserId Account JobState Reason Requeue Restarts ExitCode Partition NodeList NumNodes StdOut WorkDir Dependency"
_SQUEUE = ("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%P|%N|%j")
_SACCT = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,ExitCode,Partition,NodeList")


class Both:
    """A real cluster and a fake one, asked the same. Jobs without ``--output`` write to the folder."""

    def __init__(self, cluster, fake, folder):
        self.cluster = cluster
        self.fake = fake
        self.folder = folder
        self.numbers = ()

    def run(self, which, *argv, check=True, **settings):
        """Run a command of one of them."""
        return subprocess.run(
            argv, env=which.environment, check=check, capture_output=True, text=True, cwd=self.folder, **settings
        )

    def ask(self, *argv):
        """Return what both answered, without values: exit code, output, errors."""
        return [
            (done.returncode, _plain(done.stdout), _plain(done.stderr))
            for done in (self.run(each, *argv, check=False, input="") for each in (self.cluster, self.fake))
        ]

    def submit(self, script, *options):
        """Submit the same job to both."""
        options = ("--parsable", "--output=/dev/null", *options)
        script = f"#!/bin/sh\n{script}\n"
        self.numbers = tuple(
            self.run(each, "sbatch", *options, input=script).stdout.strip() for each in (self.cluster, self.fake)
        )

    def each(self, *argv):
        """Run a command for the job of each, whose number follows the last word or its ``=``; return what it printed."""
        options, last = argv[:-1], argv[-1]
        words = [(last + number,) if last.endswith("=") else (last, number) for number in self.numbers]
        return [self.run(each, *options, *named).stdout for each, named in zip((self.cluster, self.fake), words)]

    def agree(self, state):
        """Wait until the job of both is in a state, and compare all that their commands print of it."""
        self.cluster.reaches(self.numbers[0], state)
        self.fake.reaches(self.numbers[1], state)
        real, faked = (fields(line) for line in self.each("scontrol", "--oneliner", "show", "job"))
        assert faked.keys() == real.keys()
        assert {name: faked[name] for name in _JOB_FIELDS.split()} == {name: real[name] for name in _JOB_FIELDS.split()}
        real, faked = (_plain(line) for line in self.each(*_SQUEUE, "--jobs="))
        assert faked == real
        # Accounting is late on a real cluster.
        until(lambda: len({_plain(text) for text in self.each(*_SACCT, "--jobs=")}) == 1)


@pytest.fixture
def both(idle_cluster, tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    yield Both(idle_cluster, fake, tmp_path)
    fake.close()


def _plain(text):
    for pattern, name in _VALUES:
        text = pattern.sub(name, text)
    return text


def test_a_job_waits_runs_and_ends(both):
    both.fake.play({"state": "PENDING", "reason": "BeginTime"}, {"state": "RUNNING"})
    both.submit("sleep 0.5; exit 137", "--begin=now+3600", "--nodes=2", "--job-name=a name", "--comment=why")
    until(lambda: both.cluster.job(both.numbers[0])["Reason"] == "BeginTime")
    both.agree("PENDING")
    both.cluster.start_now(both.numbers[0])
    both.fake.continue_with(both.numbers[1], {"state": "RUNNING"})
    both.agree("FAILED")


def test_a_job_is_requeued_and_cancelled(both):
    both.submit("exec sleep 600")
    both.agree("RUNNING")
    both.each("scontrol", "requeue")
    until(lambda: both.cluster.job(both.numbers[0])["JobState"] == "PENDING")
    both.cluster.start_now(both.numbers[0])
    both.agree("RUNNING")
    both.each("scancel")
    both.agree("CANCELLED")


def test_a_node_is_lost(both):
    both.submit("exec sleep 600", "--no-requeue")
    both.agree("RUNNING")
    both.cluster.set_node("node1", "DOWN")
    both.fake.continue_with(both.numbers[1], {"state": "NODE_FAIL"})
    both.agree("NODE_FAIL")


@pytest.mark.thorough
def test_a_time_limit_passes(both):
    both.submit("exec sleep 600", "--time=1")
    both.agree("RUNNING")
    both.cluster.exceed_time_limit(both.numbers[0])
    both.fake.continue_with(both.numbers[1], {"state": "TIMEOUT"})
    both.agree("TIMEOUT")


def test_partitions_have_the_same_fields(both):
    real, faked = (both.run(each, "scontrol", "--oneliner", "show", "partition") for each in (both.cluster, both.fake))
    shown = [[fields(line).keys() for line in answer.stdout.splitlines() if line] for answer in (real, faked)]
    assert shown[0] == shown[1]


def test_the_configuration_has_the_settings_of_the_fake(both):
    (_, real, _), (_, faked, _) = both.ask("scontrol", "show", "config")
    names = [{line.partition("=")[0] for line in text.splitlines() if "=" in line} for text in (real, faked)]
    assert names[1] <= names[0]


@pytest.mark.parametrize(
    "argv",
    [
        ("sbatch", "--partition=nosuch", "--wrap=true"),
        ("sbatch", "--account=nosuch", "--wrap=true"),
        ("sbatch", "--gres=gpu:9", "--wrap=true"),
        ("sbatch", "--gres=tpu:1", "--wrap=true"),
        ("sbatch", "--nosuchoption", "--wrap=true"),
        ("sbatch", "--test-only", "--partition=short", "--time=60", "--wrap=true"),
        ("sbatch", "--test-only", "--partition=short", "--nodes=2", "--wrap=true"),
        (*_SQUEUE, "--jobs=99999"),
        ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i"),
        (*_SACCT, "--jobs=99999"),
        ("sacct", "--noheader", "--parsable2", "--allocations", "--jobs=99999", "--format=JobID,Restarts"),
        ("scontrol", "--oneliner", "show", "job", "99999"),
        ("scontrol", "show", "hostnames", "node[1-2]"),
        ("scontrol", "requeue", "99999"),
        ("scancel", "99999"),
    ],
    ids=" ".join,
)
def test_answers_are_the_same(both, argv):
    real, faked = both.ask(*argv)
    assert faked == real


@pytest.mark.thorough
def test_without_a_controller(both):
    """Each of the real commands tries for 10 s."""
    both.cluster.kill("controller", "slurmctld", signal.SIGTERM)
    both.fake.set_reachable(False)
    argvs = (_SQUEUE, ("sbatch", "--wrap=true"), ("scontrol", "--oneliner", "show", "job", "1"))
    try:
        with ThreadPoolExecutor() as threads:
            for real, faked in threads.map(lambda argv: both.ask(*argv), argvs):
                assert faked == real
    finally:
        both.cluster.start_slurmctld()
