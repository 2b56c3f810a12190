"""The output of Slurm's commands as values, and their failures as messages. The texts are those of Slurm 22.05."""

import os

import pytest
from fakes import slurm_programs

from scriptmode._core.machine.clock import SYSTEM
from scriptmode.errors import PlatformError, TransientError
from scriptmode.testing._fake_clock import FakeClock
from scriptmode_slurm._engine import batch_script, commands, problems
from scriptmode_slurm._engine.commands import JobStatus

JOB = (
    "JobId=25 HetJobId=25 HetJobOffset=0 JobName=x UserId=root(0) JobState=FAILED Reason=JobLaunchFailure Requeue=1 "
    "Restarts=2 BatchFlag=1 ExitCode=0:53 StartTime=2026-11-23T02:09:36 EndTime=2026-11-23T02:09:36 "
    "PreemptEligibleTime=2026-11-23T02:09:36 PreemptTime=2026-11-23T02:10:00 Partition=batch NodeList=node2 "
    "BatchHost=node2 Command=/x y/het.sh WorkDir=/x Comment=a b 'c' JobState=RUNNING  StdErr=/x/out.txt Power= \n"
    "JobId=26 HetJobId=25 JobState=PENDING\n"
)
START = 1795399776.0


def test_a_pending_job_has_its_reason_and_expected_start():
    line = "25+0|PENDING|2026-11-23T02:09:36|batch,urgent||(ReqNodeNotAvail, UnavailableNodes:node1)|a|b\n25+1|PENDING|N/A|u||x|n"
    first, _ = commands.parse_lines(line, commands._SQUEUE)
    assert first == JobStatus(
        25, "PENDING", "ReqNodeNotAvail, UnavailableNodes:node1", START, "batch,urgent", name="a|b"
    )
    assert list(commands.parse_lines("", commands._SQUEUE)) == []
    named = "7|PENDING|N/A|b||x|a\nb\nc|d|e|f|g|h|i\n8|PENDING|N/A|b||x|n"
    assert [(each.job_id, each.name) for each in commands.parse_lines(named, commands._SQUEUE)] == [(7, "a"), (8, "n")]


def test_a_job_of_scontrol_has_its_restarts_its_preemption_and_its_exit_code():
    assert commands.parse_job(JOB) == JobStatus(
        25, "FAILED", "JobLaunchFailure", START, "batch", "node2", exit_code=0, signal=53, restarts=2,
        preempted=START + 24, end=START, name="x",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("7|COMPLETED|0:0|2026-11-23T02:09:36|batch|node[1-2]|None|job", ("COMPLETED", 0, 0, None)),
        ("7|CANCELLED by 1000|0:15|Unknown|batch|None assigned|None|job", ("CANCELLED", 0, 15, 1000)),
        ("7+0|FAILED|3:0|x|batch|node1|None|job\n7+1|COMPLETED|0:0|x|u|n|None|job", ("FAILED", 3, 0, None)),
    ],
)
def test_the_accounting_tells_how_a_job_ended_and_who_cancelled_it(record, expected):
    found, *_ = commands.parse_lines(record, commands._SACCT.values())
    assert (found.job_id, found.state, found.exit_code, found.signal, found.cancelled_by) == (7, *expected)
    assert found.name == "job"


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """A directory of programs, the only one on PATH with a shell's."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return slurm_programs.Programs(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sbatch: error: invalid partition specified: gpuu\nsbatch: error: Batch job submission failed: Invalid partition name",
            "sbatch: invalid partition specified: gpuu: Batch job submission failed: Invalid partition name; see",
        ),
        ("allocation failure: Invalid feature", "sbatch: allocation failure: Invalid feature; see whether"),
    ],
)
def test_a_refusal_of_sbatch_is_passed_on_in_its_words(programs, tmp_path, text, message):
    programs.add("sbatch", f"cat >&2 <<'E'\n{text}\nE\nexit 1")
    with pytest.raises(PlatformError) as caught:
        commands.submit(tmp_path / "job.sh")
    assert message in str(caught.value)


def test_the_options_of_a_header_are_those_that_sbatch_reads_whether_the_job_could_start_or_not(
    programs, tmp_path, monkeypatch
):
    monkeypatch.setenv("SBATCH_COMMENT", "of the user")
    block = "sbatch: defined options\nsbatch: --- ---\nsbatch: %s\nsbatch: --- ---\nsbatch: end of defined options\n"
    first = block % 'mail-type : END,FAIL\nsbatch: comment   : $SBATCH_COMMENT: "b"\nsbatch: constraint : '
    text = f"sbatch: select/linear: init: loaded\n{first}{block % 'nodes : 2-4'}sbatch: error: Invalid account"
    programs.add("sbatch", f"cat >&2 <<E\n{text}\nE\nexit 1")
    first = {"mail_type": "END,FAIL", "comment": ': "b"', "constraint": ""}
    assert commands.read_header(tmp_path / "job.sh") == [first, {"nodes": "2-4"}]
    programs.add("sbatch", "echo 'sbatch: fatal: Unmatched `\"`' >&2; exit 1")
    with pytest.raises(PlatformError, match="sbatch: fatal: Unmatched"):
        commands.read_header(tmp_path / "job.sh")


def test_a_machine_without_slurm_is_named(programs, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlatformError, match="there is no command 'scancel': this machine is not a login node"):
        commands.cancel(5)


def test_a_controller_that_does_not_answer_is_asked_again(programs, tmp_path, monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(SYSTEM, "now", clock.now)
    monkeypatch.setattr(SYSTEM, "sleep", clock.sleep)
    refuse = "echo 'scancel: error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
    programs.add("scancel", refuse)
    with pytest.raises(TransientError, match="see whether slurmctld runs: scontrol ping"):
        commands.cancel(5)
    programs.add("scancel", f'[ -e "$0.tried" ] && exit 0; touch "$0.tried"; {refuse}')
    commands.cancel(5)
    assert (tmp_path / "scancel.tried").exists()


def test_a_command_that_does_not_end_is_an_error_that_may_pass(programs, monkeypatch):
    monkeypatch.setattr(commands, "_COMMENT_SECONDS", 0.2)
    programs.add("scontrol", "exec sleep 60")
    commands.set_comment(7, "why")
    with pytest.raises(TransientError, match=r"scontrol: it did not end within 0\.1 s; see whether Slurm answers"):
        commands._run(("scontrol",), seconds=0.1)


@pytest.mark.parametrize("missing", ["subprocess.time", "os.pidfd_open"])
def test_the_end_of_a_command_is_awaited_not_polled_unless_python_has_no_pidfd(programs, monkeypatch, missing):
    programs.add("scontrol", "exec sleep 0.1")
    monkeypatch.delattr(missing)
    commands._run(("scontrol",))


def test_a_job_that_slurmctld_forgot_is_looked_up_in_the_accounting(programs):
    programs.add("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    programs.add("sacct", "echo '7|TIMEOUT|0:15|2026-11-23T02:09:36|batch|node1|None|job'")
    assert commands.find_status(7).state == "TIMEOUT"
    programs.add("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert commands.find_status(7) is None


def test_the_variables_of_a_user_do_not_change_what_is_asked(programs, monkeypatch):
    monkeypatch.setenv("SQUEUE_FORMAT", "%A")
    programs.add("squeue", 'echo "7|PENDING|N/A|$SQUEUE_FORMAT|$TZ|x|n"')
    assert commands.find_queue() == {7: JobStatus(7, "PENDING", "x", nodes="UTC0", name="n")}


@pytest.fixture
def asked(programs, tmp_path):
    """Return the number of calls of squeue; jobs 7 and 8 are pending, 9 runs."""
    jobs = (
        "echo '8|PENDING|N/A|b||Priority|n'; echo '7|PENDING|N/A|b||BadConstraints|n'; echo '9|RUNNING|N/A|b|n|None|n'"
    )
    programs.add("squeue", f'echo x >>"$0.calls"; case "$*" in *--sort*) printf "8\n7\n";; *) {jobs};; esac')
    return lambda: len((tmp_path / "squeue.calls").read_text().split())


def test_one_process_lists_the_queue_every_three_seconds_however_many_jobs_it_asks_for(asked):
    clock = FakeClock()
    states = commands.StatusCache(clock)
    for _ in range(3):
        assert [states.status(number).position for number in (7, 8)] == [2, 1]
    assert asked() == 2, "the queue, and the order of the partition"
    clock.sleep(commands.STATUS_SECONDS)
    assert states.status(7).position == 2
    assert asked() == 3, "the order is asked for less often"
    states.forget(7)
    assert states.status(7).position == 2
    assert asked() == 4


def test_a_pending_job_is_asked_for_once_a_minute_while_nothing_changes(asked, programs):
    clock = FakeClock()
    states = commands.StatusCache(clock)

    def follow(seconds, **how):
        before = asked()
        for _ in range(2 * seconds):
            states.status(7, **how)
            clock.sleep(0.5)
        return asked() - before

    assert states.status(7).reason == "BadConstraints"
    assert follow(120) <= 8
    assert follow(600) <= 20, "the queue, and the order of the partition"
    assert follow(30, is_urgent=True) >= 9, "of a job that is to stop"
    programs.add("squeue", """echo x >>"$0.calls"; echo '7|PENDING|N/A|b||Priority|n'; echo '6|PENDING|N/A|b||x|n'""")
    assert states.status(6).job_id == 6, "a new job is found at once"
    assert states.status(7).reason == "Priority"
    assert follow(30) >= 3, "after a change it is asked for soon again"


def test_an_error_counts_for_all_jobs_for_three_seconds(programs, tmp_path):
    clock = FakeClock()
    states = commands.StatusCache(clock)
    programs.add("squeue", 'echo x >>"$0.calls"; echo "Unable to contact slurm controller" >&2; exit 1')
    for number in (7, 8, 7):
        with pytest.raises(TransientError, match="see whether slurmctld runs"):
            states.status(number)
    assert (tmp_path / "squeue.calls").read_text() == "x\n"
    clock.sleep(commands.STATUS_SECONDS)
    programs.add("squeue", "echo '7|PENDING|N/A|b||Priority|n'")
    assert states.status(7).reason == "Priority"


def test_a_reason_that_slurm_also_has_for_a_moment_is_final_after_a_minute(asked):
    clock = FakeClock()
    states = commands.StatusCache(clock)
    found = []
    for _ in range(3):
        status = states.status(7)
        found.append(problems.pending_problem(status.reason, 7, status.reason_seconds))
        clock.sleep(30)
    assert found[:2] == [None, None]
    assert str(found[2]).startswith("Slurm never starts job 7 (BadConstraints); ask for what the cluster allows: ")


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("Resources", True), ("ReqNodeNotAvail, UnavailableNodes:node1", True), ("QOSMaxJobsPerUserLimit", True),
        ("SomethingNew", True), ("PartitionNodeLimit", True), ("PartitionTimeLimit", False),
        ("AssocMaxCpuPerJobLimit", False), ("QOSMinGRES", False),
    ],
)  # fmt: skip
def test_a_pending_reason_that_never_passes_is_a_problem(reason, passes):
    assert (problems.pending_problem(reason, 7, seconds=60) is None) == passes


def test_a_partition_has_its_time_limits_and_its_nodes(programs):
    programs.add("sinfo", "printf 'batch*|infinite|n/a|2\nshort|1-00:05:00|1:00|1\n'")
    assert commands.list_partitions() == [("batch", None, None, 2, True), ("short", 86700, 60, 1, False)]


@pytest.mark.parametrize(
    ("options", "hosts", "gpus"),
    [
        ({"gres": "nic:1,gpu:a100:2"}, 2, 2), ({"gres": "gres:nic:1,gres:gpu:2"}, 2, 2),
        ({"gpus_per_task": "a100:2", "ntasks": "6"}, 2, 6), ({"gres": "gpumem:3"}, 2, 0),
        ({"gpus_per_node": "a100:2"}, 2, 2), ({"gpus": "8"}, 4, 2), ({"tres_per_task": "cpu=2,gres/gpu:3"}, 1, 3),
    ],
)  # fmt: skip
def test_the_gpus_of_a_host_are_those_that_it_asks_for(options, hosts, gpus):
    assert batch_script.gpus_of_host(options, hosts) == gpus


@pytest.mark.parametrize(("reason", "signal"), [("JobLaunchFailure", 0), ("None", 53)])
def test_a_batch_script_that_a_node_cannot_start_is_told_from_one_that_ended(reason, signal):
    assert problems.is_launch_failure(reason, signal)
    assert not problems.is_launch_failure("NonZeroExitCode", 0)
    assert not problems.is_launch_failure("JobLaunchFailure", 9)
    text = problems.describe_launch_failure(7, "node1")
    assert text.startswith("Slurm job 7 could not be started on node1 (JobLaunchFailure): most likely the node does")
    assert "SCRIPTMODE_DATA_DIR" in text


def test_a_command_that_gets_the_signal_for_its_job_is_run_once_more_but_sbatch_is_not(programs, tmp_path):
    programs.add("scontrol", 'echo x >>"$0.calls"; [ $(wc -l <"$0.calls") -gt 1 ] || kill -TERM $$; echo ok')
    commands.requeue(7)
    assert (tmp_path / "scontrol.calls").read_text() == "x\nx\n"
    programs.add("sbatch", 'echo x >>"$0.calls"; kill -TERM $$')
    with pytest.raises(PlatformError, match="sbatch"):
        commands.submit(tmp_path / "job.sh", environ={"PATH": os.environ["PATH"]})
    assert (tmp_path / "sbatch.calls").read_text() == "x\n"


def test_a_comment_has_no_character_that_a_program_cannot_be_given(programs, tmp_path):
    programs.add("scontrol", 'echo "$@" >"$0.args"')
    commands.set_comment(7, "exit \0code \x1b]0;a title\x075")
    assert (tmp_path / "scontrol.args").read_text() == "update JobId=7 Comment=exit code 5\n"
