"""The fake Slurm: jobs play their histories, batch scripts and steps run, and what is unknown is refused."""

import os
import signal
import subprocess

import pytest
from fakes.processes import until
from fakes.slurm import FakeSlurm

pytestmark = pytest.mark.slow
SQUEUE = ("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%S|%N")
SACCT = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,ExitCode,NodeList,Reason")
COMPONENTS = """\
#SBATCH --job-name=het --nodes=1
#SBATCH hetjob
#SBATCH --nodes=1 --partition=urgent --gres=gpu:1
echo $SLURM_HET_SIZE $SLURM_JOB_NODELIST $SLURM_JOB_NODELIST_HET_GROUP_1
srun --het-group=1 --nodes=1 sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'
exec sleep 600
"""


@pytest.fixture
def fake(tmp_path):
    cluster = FakeSlurm(tmp_path / "slurm")
    yield cluster
    cluster.close()


def run(fake, *argv, check=True, **settings):
    return subprocess.run(argv, check=check, capture_output=True, text=True, env=fake.environment, **settings)


def submit(fake, tmp_path, script, *options):
    options = ("--parsable", f"--output={tmp_path}/out", "--open-mode=append", *options)
    return run(fake, "sbatch", *options, input=f"#!/bin/sh\n{script}\n", cwd=tmp_path).stdout.strip()


def test_a_script_runs_and_its_exit_code_is_the_jobs(fake, tmp_path):
    number = submit(
        fake, tmp_path, "echo $SLURM_JOB_NODELIST $CUDA_VISIBLE_DEVICES; exit 137", "--nodes=2", "--gres=gpu:2"
    )
    fake.reaches(number, "FAILED")
    assert (tmp_path / "out").read_text() == "node[1-2] 0,1\n"
    assert "ExitCode=137:0 " in run(fake, "scontrol", "--oneliner", "show", "job", number).stdout
    assert run(fake, *SACCT, f"--jobs={number}").stdout == f"{number}|FAILED|9:0|node[1-2]|None\n"


def test_a_history_goes_on_by_the_number_of_questions(fake, tmp_path):
    fake.play(
        {"state": "PENDING", "reason": "Priority", "asks": 2, "start": 60},
        {"state": "PENDING", "reason": "Resources", "asks": 1},
        {"state": "RUNNING", "asks": 1},
        {"state": "NODE_FAIL"},
    )
    number = submit(fake, tmp_path, "sleep 600")
    seen = [run(fake, *SQUEUE, f"--jobs={number}").stdout.strip().split("|")[1:3] for _ in range(5)]
    assert seen == [
        ["PENDING", "Priority"],
        ["PENDING", "Priority"],
        ["PENDING", "Resources"],
        ["RUNNING", "None"],
        ["NODE_FAIL", "NodeDown"],
    ]
    until(lambda: not fake.processes(number))


def test_a_history_goes_on_by_the_clock(fake, tmp_path):
    fake.play({"state": "PENDING", "reason": "BeginTime", "seconds": 3600}, {"state": "RUNNING"})
    number = submit(fake, tmp_path, "exit 0")
    assert fake.job(number)["state"] == "PENDING"
    fake.advance(3601)
    fake.reaches(number, "COMPLETED")


def test_a_preempted_job_is_requeued_and_runs_again(fake, tmp_path):
    fake.play({"state": "RUNNING"})
    script = "srun --nodes=1 --ntasks=1 --overlap sh -c 'trap \"echo notice; exit 3\" TERM; sleep 600 & wait'; echo $?; sleep 600"
    number = submit(fake, tmp_path, f'echo "run $SLURM_RESTART_COUNT"; {script}')
    until(lambda: fake.asks("srun"))
    until(lambda: len(fake.processes(number)) > 3)
    fake.continue_with(
        number,
        {"state": "PREEMPTING"},
        {"state": "PENDING", "reason": "BeginTime", "was": "PREEMPTED", "seconds": 0.1},
        {"state": "RUNNING"},
    )
    until(lambda: (tmp_path / "out").read_text().endswith("Exited with exit code 3\n3\n"))
    assert "notice\n" in (tmp_path / "out").read_text()
    shown = run(fake, "scontrol", "--oneliner", "show", "job", number).stdout
    assert "JobState=RUNNING" in shown
    assert "PreemptTime=None" not in shown
    run(fake, "scontrol", "requeue", number)
    until(lambda: fake.job(number)["restarts"] and "run 1\n" in (tmp_path / "out").read_text())
    assert fake.job(number)["restarts"] == 1
    lines = run(fake, *SACCT, "--duplicates", f"--jobs={number}").stdout.splitlines()
    assert [line.split("|")[1] for line in lines] == ["PREEMPTED", "RUNNING"]
    run(fake, "scancel", number)
    assert run(fake, *SACCT, f"--jobs={number}").stdout.split("|")[1] == f"CANCELLED by {os.getuid()}"
    until(lambda: not fake.processes(number))


def test_input_reaches_a_step_and_sigterm_kills_it(fake, tmp_path):
    program = 'echo ready; read word; echo "got $word"; trap "" TERM; sleep 600 & wait'
    srun = ("srun", "--nodes=1", "--ntasks=1", "--nodelist=node2", "sh", "-c", program)
    with subprocess.Popen(srun, env=fake.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as step:
        assert step.stdout.readline() == "ready\n"
        step.stdin.write("term\n")
        step.stdin.flush()
        assert step.stdout.readline() == "got term\n"
        step.send_signal(signal.SIGTERM)
        assert step.wait(60) == 137


def test_a_position_in_the_queue_is_that_of_the_submission(fake, tmp_path):
    for _ in range(2):
        fake.play({"state": "PENDING", "reason": "Resources"})
    first, second = submit(fake, tmp_path, "true"), submit(fake, tmp_path, "true")
    queue = run(
        fake, "squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i", "--partition=batch"
    ).stdout
    assert queue.split() == [first, second]


@pytest.mark.parametrize(
    ("argv", "text", "code"),
    [
        (("sbatch", "-p", "nosuch", "--wrap=true"), "invalid partition specified: nosuch", 1),
        (("sbatch", "--test-only", "-p", "short", "-N2", "--wrap=true"), "allocation failure: Requested node", 1),
        (("sbatch", "--nosuchoption"), "unrecognized option '--nosuchoption'", 255),
        (("squeue", "--jobs=99"), "slurm_load_jobs error: Invalid job id specified", 1),
        (("scontrol", "requeue", "99"), "Invalid job id specified for job 99", 1),
        (("squeue", "--json"), "unrecognized option '--json'", 1),
    ],
)
def test_what_slurm_refuses_is_refused(fake, argv, text, code):
    refused = run(fake, *argv, check=False)
    assert refused.returncode == code
    assert text in refused.stderr


def test_a_controller_that_is_away_and_a_job_that_it_forgot(fake, tmp_path):
    number = submit(fake, tmp_path, "exit 0")
    fake.reaches(number, "COMPLETED")
    fake.set_reachable(False)
    assert "Unable to contact slurm controller" in run(fake, *SQUEUE, check=False).stderr
    fake.set_reachable(True)
    fake.purge(number)
    assert "Invalid job id" in run(fake, *SQUEUE, f"--jobs={number}", check=False).stderr
    assert run(fake, *SACCT, f"--jobs={number}").stdout.startswith(f"{number}|COMPLETED|0:0|")


def test_a_job_of_two_components(fake, tmp_path):
    number = submit(fake, tmp_path, COMPONENTS)
    until((tmp_path / "out").exists)
    until(lambda: (tmp_path / "out").read_text() == "2 node1 node2\nnode2 0\n")
    shown = run(fake, *SQUEUE, f"--jobs={number}").stdout.splitlines()
    assert [line.split("|")[0::4] for line in shown] == [[f"{number}+0", "node1"], [f"{number}+1", "node2"]]
    records = run(fake, "scontrol", "--oneliner", "show", "job", number).stdout.splitlines()
    assert [record.split()[:3] for record in records] == [
        [f"JobId={int(number) + offset}", f"HetJobId={number}", f"HetJobOffset={offset}"] for offset in (0, 1)
    ]
