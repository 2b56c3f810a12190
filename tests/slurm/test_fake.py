"""The fake Slurm answers as a real cluster does: the same questions, the same fields, states, texts and exit codes."""

import re
import signal
import subprocess
import time
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
    (re.compile(r"srun: Force Terminated StepId=.*\n"), ""),
    (re.compile(r"using \d+ processors"), "using P processors"),
)
_JOB_FIELDS = "JobName UserId Account JobState Reason Requeue Restarts ExitCode Partition NodeList NumNodes StdOut WorkDir Dependency"
_SQUEUE = ("squeue", "--noheader", "--format=%i|%T|%t|%r|%P|%D|%N|%u|%a|%j|%k|%B")
_SACCT = ("sacct", "--noheader", "--parsable2", "--allocations")
_RECORD = "JobID,State,ExitCode,NodeList,NNodes,Partition,User"


class Both:
    """A real cluster and a fake one, asked the same."""

    def __init__(self, cluster, fake):
        self.cluster = cluster
        self.fake = fake
        self.numbers = ()

    def ask(self, *argv):
        """Return what both answered, without values: exit code, output, errors."""
        return [
            (done.returncode, _plain(done.stdout), _plain(done.stderr))
            for done in (_run(each, *argv, check=False, input="") for each in (self.cluster, self.fake))
        ]

    def submit(self, script, *options):
        """Submit the same job to both."""
        options = ("--parsable", "--output=/dev/null", *options)
        script = f"#!/bin/sh\n{script}\n"
        self.numbers = tuple(
            _run(each, "sbatch", *options, input=script).stdout.strip() for each in (self.cluster, self.fake)
        )

    def each(self, *argv):
        """Run a command for the job of each; return what it printed."""
        return [_run(each, *argv, number).stdout for each, number in zip((self.cluster, self.fake), self.numbers)]

    def agree(self, state):
        """Wait until the job of both is in a state, and compare all that their commands print of it."""
        self.cluster.reaches(self.numbers[0], state)
        self.fake.reaches(self.numbers[1], state)
        real, faked = (fields(line) for line in self.each("scontrol", "--oneliner", "show", "job"))
        assert faked.keys() == real.keys()
        assert [(name, faked[name]) for name in _JOB_FIELDS.split()] == [
            (name, real[name]) for name in _JOB_FIELDS.split()
        ]
        real, faked = (_plain(line) for line in self.each(*_SQUEUE, "--states=all", "--jobs"))
        assert faked == real
        self.agree_in_accounting()

    def agree_in_accounting(self, *options, names=_RECORD):
        """Wait until accounting says the same: it is late on a real cluster."""

        def answers():
            return [_plain(text) for text in self.each(*_SACCT, f"--format={names}", *options, "--jobs")]

        deadline = time.monotonic() + 20
        while (given := answers())[0] != given[1]:
            assert time.monotonic() < deadline, given
            time.sleep(0.1)


@pytest.fixture
def both(idle_cluster, tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    yield Both(idle_cluster, fake)
    fake.close()


def _run(which, *argv, check=True, **settings):
    return subprocess.run(argv, env=which.environment, check=check, capture_output=True, text=True, cwd="/", **settings)


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
    both.submit("exec sleep 600", "--gres=gpu:1")
    both.agree("RUNNING")
    both.each("scontrol", "requeue")
    until(lambda: both.cluster.job(both.numbers[0])["JobState"] == "PENDING")
    both.cluster.start_now(both.numbers[0])
    both.agree("RUNNING")
    both.agree_in_accounting("--duplicates")
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


def test_a_job_of_two_components(both):
    """Which of its nodes a component gets is the scheduler's."""
    both.submit("#SBATCH --nodes=1 --job-name=het\n#SBATCH hetjob\n#SBATCH --partition=urgent\nexec sleep 600")
    both.cluster.reaches(both.numbers[0], "RUNNING")
    real, faked = (_plain(text) for text in both.each("squeue", "--noheader", "--format=%i|%T|%P|%D", "--jobs"))
    assert faked == real
    real, faked = (
        [fields(line) for line in text.splitlines() if line]
        for text in both.each("scontrol", "--oneliner", "show", "job")
    )
    assert [record.keys() for record in faked] == [record.keys() for record in real]
    assert [record["HetJobOffset"] for record in faked] == [record["HetJobOffset"] for record in real]
    both.each("scancel")
    both.cluster.reaches(both.numbers[0], "CANCELLED")
    both.agree_in_accounting(names="JobID,State,ExitCode,Partition")


@pytest.mark.parametrize("what", ["node", "partition"])
def test_nodes_and_partitions_have_the_same_fields(both, what):
    real, faked = (_run(each, "scontrol", "--oneliner", "show", what) for each in (both.cluster, both.fake))
    shown = [[fields(line).keys() for line in answer.stdout.splitlines() if line] for answer in (real, faked)]
    assert shown[0] == shown[1]


def test_the_configuration_has_the_same_names(both):
    answers = both.ask("scontrol", "show", "config")
    names = [[line.partition("=")[0].strip() for line in text.splitlines() if "=" in line] for _, text, _ in answers]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    "argv",
    [
        ("sbatch", "-p", "nosuch", "--wrap=true"),
        ("sbatch", "-A", "nosuch", "--wrap=true"),
        ("sbatch", "--gres=gpu:9", "--wrap=true"),
        ("sbatch", "--gres=tpu:1", "--wrap=true"),
        ("sbatch", "--nosuchoption", "--wrap=true"),
        ("sbatch", "--test-only", "--partition=short", "--time=60", "--wrap=true"),
        ("sbatch", "--test-only", "-p", "nosuch", "--wrap=true"),
        ("sbatch", "--test-only", "-p", "short", "-N2", "--wrap=true"),
        ("sbatch", "--test-only", "--gres=gpu:9", "--wrap=true"),
        ("squeue", "--jobs=99999"),
        ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i"),
        ("sacct", "--noheader", "--parsable2", "--allocations", "--jobs=99999"),
        ("sacct", "--parsable2", "--allocations", "--jobs=99999", "--format=JobID,State"),
        ("sacct", "--parsable2", "--allocations", "--jobs=99999", "--format=JobID,Restarts"),
        ("scontrol", "--oneliner", "show", "job", "99999"),
        ("scontrol", "show", "hostnames", "node[1-2]"),
        ("scontrol", "requeue", "99999"),
        ("scontrol", "ping"),
        ("scancel", "99999"),
        ("sinfo", "--noheader", "--format=%P|%a|%l|%D|%T|%N|%G|%c|%m"),
        ("srun", "--jobid=99999", "true"),
        ("srun", "--nodes=1", "--ntasks=1", "false"),
        ("srun", "--nodes=1", "sh", "-c", "kill -KILL $$"),
        ("srun", "--nodelist=node2", "sh", "-c", "echo $SLURMD_NODENAME $SLURM_NODEID $SLURM_STEP_ID; cat"),
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
    argvs = (("squeue",), ("sbatch", "--wrap=true"), ("scontrol", "show", "job", "-o", "1"), ("sinfo",))
    try:
        with ThreadPoolExecutor() as threads:
            for real, faked in threads.map(lambda argv: both.ask(*argv), argvs):
                assert faked == real
    finally:
        both.cluster.start_slurmctld()
