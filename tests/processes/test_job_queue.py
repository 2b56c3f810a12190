"""``scriptmode run --queue``: jobs wait for one another, in the order in which they were created."""

import json
import signal
from contextlib import closing

import pytest
from fakes.command_line import PROGRAM, program
from fakes.local_jobs import SLEEPS
from fakes.processes import until
from fakes.terminal import Terminal

from scriptmode import SpecError
from scriptmode_local import LocalPlatform

pytestmark = pytest.mark.usefixtures("jobs_of_the_command")


def queued(jobs, script=SLEEPS, most=1, **fields):
    request = jobs.request(script, **fields)
    LocalPlatform(data_dir=jobs.data_dir, queue=most).create(request)
    name = request["TrainingJobName"]
    # Its agent enters the queue; on a busy machine that of the next job could come first.
    until(lambda: [*(jobs.data_dir / "queue").glob(f"*-{name}")] or secondary(jobs, name) != "Pending")
    return name


def secondary(jobs, name):
    return jobs.platform.describe(name).response["SecondaryStatus"]


def positions(jobs):
    return {each["TrainingJobName"]: each["QueuePosition"] for each in jobs.platform.list() if "QueuePosition" in each}


def until_training(jobs, name):
    until(lambda: secondary(jobs, name) == "Training")


def test_jobs_start_one_after_the_other_in_their_order(jobs):
    script = """
        import sys, time
        log = sys.argv[2]
        open(log, "a").write("begin ")
        time.sleep(0.5)
        open(log, "a").write("end ")
    """
    log = jobs.folder / "log"
    names = [queued(jobs, script, hyperparameters={"log": str(log)}) for _ in range(4)]
    for name in names:
        jobs.wait(name)
    assert log.read_text().split() == ["begin", "end"] * 4
    started = [jobs.job_folder(name).read_state().training_started for name in names]
    assert started == sorted(started)
    until(lambda: not list((jobs.data_dir / "queue").iterdir()))


def test_waiting_jobs_are_listed_with_their_position_and_can_be_stopped(jobs):
    first, second, third = (queued(jobs) for _ in range(3))
    until_training(jobs, first)
    until(lambda: positions(jobs) == {second: 1, third: 2})
    assert secondary(jobs, second) == "Pending"
    statuses = {line.split()[-1]: line.split()[3] for line in program("list").stdout.splitlines()[1:]}
    assert statuses == {first: "InProgress", second: "Queued(1)", third: "Queued(2)"}
    described = program("describe", second).stdout.splitlines()
    assert [line.split() for line in described[1:2]] == [["status", "Queued(1)"]]
    stopped = program("stop", second, "--wait")
    assert stopped.stdout == f"training job {second} has ended: Stopped\n"
    assert "waiting for the end, SIGKILL 120 s after SIGTERM by default" in stopped.stderr
    assert program("stop", second, "--wait").stderr == ""
    until(lambda: positions(jobs) == {third: 1})
    jobs.platform.stop(first)
    until_training(jobs, third)
    assert positions(jobs) == {}


@pytest.mark.parametrize("options", [(), ("--queue", "1"), ("--queue", "2")], ids=" ".join)
def test_jobs_that_may_write_the_same_checkpoints_at_once_are_warned_of(jobs, options):
    kept = ("--checkpoint-s3-uri", str(jobs.folder / "kept"))
    (jobs.folder / "sleeps.py").write_text(SLEEPS)
    run = ("run", str(jobs.folder / "sleeps.py"), "--no-wait", *kept)
    assert "checkpoints" not in program(*run, "--job-name", "first").stderr
    warning = f"training job first, which had not ended at the start, writes to file://{kept[1]}, too: each"
    # A directory below it, by another path.
    run = (*run[:-1], f"{jobs.folder}/none/../kept/below")
    warning = warning.replace(kept[1], run[-1])
    assert (warning in program(*run, "--job-name", "second", *options).stderr) == (options != ("--queue", "1"))
    program("stop", "first", "--now", "--wait")
    again = program("rerun", "first", "--job-name", "third", "--no-wait").stderr
    assert again.startswith("warning: training job second, which had not ended at the start, writes to")
    program("stop", "second", "third", "--now")


def test_a_job_that_waits_for_longer_than_max_wait_ends_without_a_start(jobs):
    until_training(jobs, queued(jobs))
    limits = {"MaxRuntimeInSeconds": 2, "MaxWaitTimeInSeconds": 2}
    description = jobs.wait(queued(jobs, more={"EnableManagedSpotTraining": True, "StoppingCondition": limits}))
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", "MaxWaitTimeExceeded")
    assert [each["Status"] for each in description["SecondaryStatusTransitions"]][:2] == ["Pending", "Stopping"]


def test_ctrl_c_while_a_job_waits_tells_that_it_waits(jobs):
    first, second = queued(jobs), queued(jobs)
    until_training(jobs, first)
    until(lambda: positions(jobs) == {second: 1})
    with closing(Terminal(150, 20, [PROGRAM, "logs", "-f", second], {})) as terminal:
        until(lambda: terminal.read() and any("Waiting for a place" in line for line in terminal.shown()))
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait()
        said = " ".join(terminal.all_lines())
    assert f"Training job {second} is number 1 in the queue, and starts by itself. Follow it again: scriptmode" in said


def test_a_job_that_does_not_wait_counts_too(jobs):
    at_once = jobs.start(SLEEPS)
    until_training(jobs, at_once)
    waits = queued(jobs)
    until(lambda: positions(jobs) == {waits: 1})
    other = jobs.start(SLEEPS)
    until_training(jobs, other)
    assert secondary(jobs, waits) == "Pending"
    for name in (at_once, other):
        jobs.platform.stop(name)
    until_training(jobs, waits)


def test_a_job_tells_once_why_its_queue_cannot_be_used(jobs):
    jobs.data_dir.mkdir()
    (queue := jobs.data_dir / "queue").touch()
    LocalPlatform(data_dir=jobs.data_dir, queue=1).create(request := jobs.request("pass"))
    jobs.until_line(name := request["TrainingJobName"], "waits until the queue of its data directory can be used: ")
    queue.unlink()
    jobs.completed(name)
    assert str(jobs.lines(name)).count("waits until the queue") == 1


def test_a_job_whose_agent_dies_makes_room_for_the_next(jobs):
    first, second = queued(jobs), queued(jobs)
    until_training(jobs, first)
    until(lambda: positions(jobs) == {second: 1})
    jobs.kill(first)
    until_training(jobs, second)


def test_the_command_queues_a_job_with_and_without_a_number(jobs, tmp_path):
    (tmp_path / "train.py").write_text(SLEEPS)
    for number, words in enumerate((["train.py", "--queue"], ["--queue", "2", "train.py"], ["--queue=1", "train.py"])):
        done = program("run", *words, "--no-wait", "--job-name", f"job-{number}")
        assert done.returncode == 0, done.stderr
    until_training(jobs, "job-0")
    until_training(jobs, "job-1")
    until(lambda: positions(jobs) == {"job-2": 1})
    assert json.loads((jobs.data_dir / "jobs/job-1/job.json").read_text())["queue"] == 2


@pytest.mark.parametrize("number", [0, "2"])
def test_a_wrong_number_of_the_platform_is_an_error(number):
    with pytest.raises(SpecError, match="queue is .*give the number of jobs that may run at once"):
        LocalPlatform(queue=number)


def test_a_job_whose_agent_was_killed_while_it_waited_waits_again_without_retries(jobs):
    first, second = queued(jobs), queued(jobs, "print('trained')")
    until_training(jobs, first)
    until(lambda: positions(jobs) == {second: 1})
    jobs.kill(second)
    until(lambda: positions(jobs) == {second: 1} and jobs.job_folder(second).read_processes())
    assert secondary(jobs, second) == "Pending"
    jobs.platform.stop(first)
    description = jobs.completed(second)
    assert "Interrupted" not in str(description["SecondaryStatusTransitions"])


def test_a_job_that_starts_again_waits_for_its_turn(jobs):
    more = {"RetryStrategy": {"MaximumRetryAttempts": 2}}
    first = queued(jobs, more=more)
    until_training(jobs, first)
    # Else the second one could start in the moment in which the first one has no agent.
    other = jobs.start(SLEEPS)
    until_training(jobs, other)
    second = queued(jobs)
    jobs.kill(first)
    until(lambda: positions(jobs) == {first: 1, second: 2})
    jobs.platform.stop(other)
    until(lambda: secondary(jobs, first) == "Training" and positions(jobs) == {second: 1})


def test_the_training_time_of_a_lost_job_ends_with_the_last_line_or_the_last_heartbeat(jobs):
    name = jobs.start("import time\nwhile True:\n    print('step', flush=True)\n    time.sleep(0.05)")
    until_training(jobs, name)
    folder = jobs.job_folder(name)
    moments = [folder.lock_file, folder.log("algo-1")]
    jobs.until_line(name, "step")
    # A heartbeat is seconds old, most of the time.
    until(lambda: folder.log("algo-1").stat().st_mtime > folder.lock_file.stat().st_mtime + 1)
    jobs.kill(name)
    until(lambda: not folder.has_agent() and not jobs.processes(name))
    last_heartbeat, last_line = (path.stat().st_mtime for path in moments)
    state = folder.read_state()
    ended = jobs.wait(name)
    assert ended["TrainingJobStatus"] == "Failed"
    assert last_line > last_heartbeat + 1
    assert abs(ended["TrainingEndTime"].timestamp() - max(last_line, state.modified)) < 0.01


def test_a_list_of_the_jobs_starts_every_lost_one(jobs):
    more = {"RetryStrategy": {"MaximumRetryAttempts": 1}}
    names = [jobs.start(SLEEPS, more=more), jobs.start(SLEEPS, more=more), jobs.start(SLEEPS)]
    for name in names:
        until_training(jobs, name)
        jobs.kill(name)
        until(lambda name=name: not jobs.job_folder(name).has_agent())
    assert program("list").returncode == 0
    for name in names[:2]:
        until_training(jobs, name)
    assert secondary(jobs, names[2]) == "Failed"
    assert jobs.platform.resume() == []
