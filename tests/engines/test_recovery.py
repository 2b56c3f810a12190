"""Jobs of which something outside the script is lost: an agent, the job's directory, the client."""

import collections
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest
from fakes.local_jobs import KEEPS_WRITING
from fakes.processes import until
from fakes.promptness import GENEROUS

from scriptmode import JobNotFoundError, TrainingJob
from scriptmode._core.machine.data_dir import SERVER_FILE
from scriptmode._core.spec.names import SERVER_TAGS
from scriptmode_local._data.file_uris import file_path
from scriptmode_runtime.contract import MULTI_WORKER_MIRRORED_ENABLED

#: Goes on from its checkpoint; leaves a daemon that has another session.
STEPS = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    folder = "/opt/ml/checkpoints"
    done = len(os.listdir(folder))
    print("found", done, flush=True)
    for step in range(done, int(os.environ["LAST"])):
        path = os.path.join(folder, f"{os.environ['SM_CURRENT_HOST']}-{step}")
        with open(path + "_temp", "w") as file:
            file.write("w" * step)
        os.rename(path + "_temp", path)
    print("up", flush=True)
    while os.environ["WAIT"] == "1":
        time.sleep(0.1)
"""
#: Takes steps that each depend on the one before, and saves after each; the digest tells whether every step counted once.
COUNTS = """
    import hashlib, os, pathlib, time
    checkpoint = pathlib.Path("/opt/ml/checkpoints", os.environ["SM_CURRENT_HOST"])
    step, digest = checkpoint.read_text().split() if checkpoint.exists() else ("0", "")
    print("from", step, flush=True)
    print("cluster", os.environ["SM_HOSTS"], os.environ.get("TF_CONFIG"), flush=True)
    for number in range(int(step), 40):
        digest = hashlib.sha256(f"{digest} {number}".encode()).hexdigest()
        draft = checkpoint.with_name(f".{checkpoint.name}")
        draft.write_text(f"{number + 1} {digest}")
        draft.rename(checkpoint)
        print("up" if number == 5 else "step", number, flush=True)
        time.sleep(0.1)
    with open(os.path.join(os.environ["SM_MODEL_DIR"], checkpoint.name), "w") as file:
        file.write(digest)
"""
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
WAITS = """
    import os, time
    print("up", flush=True)
    while not os.path.exists("/opt/ml/checkpoints/go"):
        time.sleep(0.02)
    print("over")
"""
#: A client that follows its job.
CLIENT = """
import json, sys
from scriptmode import Estimator
Estimator(entry_point="train.py", source_dir=sys.argv[1], **json.loads(sys.argv[2])).fit(job_name=sys.argv[3])
"""
#: A process without a standard input that reads a job, such as a daemon.
READS = """
import os, sys
from scriptmode_local import LocalPlatform
platform = LocalPlatform(data_dir=sys.argv[1])
os.close(0)
platform.describe(sys.argv[2])
"""


def steps(directory, last, *, wait):
    """Return the fields of a job that trains to a step, with its checkpoints in a directory."""
    return {
        "Environment": {"LAST": str(last), "WAIT": str(int(wait))},
        "CheckpointConfig": {"S3Uri": directory.as_uri()},
    }


def test_a_killed_agent_fails_the_job_and_the_next_one_goes_on_from_its_checkpoints(engine, jobs, channels):
    directory = jobs.folder / "kept"
    name = jobs.start(STEPS, hosts=2, channels=channels, more=steps(directory, 3, wait=True))
    jobs.until_up(name)
    wanted = {f"{host}-{step}" for host in ("algo-1", "algo-2") for step in range(3)}
    until(lambda: directory.exists() and {path.name for path in directory.iterdir()} == wanted)
    assert bool(jobs.mounted(name)) == engine.mounts
    jobs.kill(name)
    description = jobs.wait(name)
    until(lambda: not jobs.remains(name))
    folder = jobs.job_folder(name)
    assert not folder.channels.exists()
    assert not (folder.host("algo-1") / "input" / "data").exists()
    assert (folder.host("algo-1") / "model").exists()
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Failed"
    reason = description["FailureReason"]
    assert re.match(r"InternalServerError: the job's agent (\(process \d+\) )?was killed or crashed", reason), reason
    assert jobs.platform.describe(name).response == description
    name = jobs.start(STEPS, hosts=1, more=steps(directory, 8, wait=False))
    jobs.completed(name)
    until(lambda: not jobs.remains(name))  # its daemon neither
    assert "algo-1: found 6" in jobs.lines(name)
    assert (directory / "algo-1-7").read_text() == "w" * 7
    assert (directory / "algo-2-2").read_text() == "ww"


def counted():
    digest = ""
    for number in range(40):
        digest = hashlib.sha256(f"{digest} {number}".encode()).hexdigest()
    return digest.encode()


def start_counting(jobs, *, script=COUNTS, hyperparameters=None, **more):
    # One that no other test has.
    kept = jobs.folder / f"kept-{time.time_ns()}"
    more = {"CheckpointConfig": {"S3Uri": kept.as_uri()}, **more}
    name = jobs.start(script, hosts=2, hyperparameters=hyperparameters, more=more)
    until(lambda: sum(" up 5" in line for line in jobs.lines(name)) == 2)
    return name


@pytest.fixture
def agent_here(engine):
    """Skip a test where a scheduler starts the agents: it queues again what it interrupts, not what is killed."""
    if engine.machine_of_each_host:
        pytest.skip("a scheduler starts the agents")


def kill_agent(jobs, name):
    """Kill a job's agent; return the job's folder once it has none."""
    folder = jobs.job_folder(name)
    jobs.kill(name)
    until(lambda: not folder.has_agent())
    return folder


def stop_counting(jobs, name):
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    assert not any("starts again" in line for line in jobs.lines(name))
    until(lambda: not jobs.remains(name))


def killed_in_two_runs(jobs, *, retries):
    """Start a job, and kill its agent in the first and in the second run; return its name."""
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": retries})
    jobs.kill(name)
    # Reading the job starts it.
    until(lambda: jobs.platform.describe(name) and sum(": from " in line for line in jobs.lines(name)) == 4)
    jobs.kill(name)
    return name


def check_counted(jobs, name, *, runs):
    """Hold a job that ran some times against one that was not interrupted."""
    description = jobs.completed(name)
    assert jobs.model(description) == {"algo-1": counted(), "algo-2": counted()}
    statuses = [each["Status"] for each in description["SecondaryStatusTransitions"]]
    assert statuses.count("Interrupted") == runs - 1
    found = [line for line in jobs.lines(name) if ": from " in line]
    assert len(found) == 2 * runs
    # What was saved in the first run was not trained again.
    assert sum(line.endswith(" 0") for line in found) == 2
    until(lambda: not jobs.remains(name))


def test_a_job_with_retries_goes_on_after_its_agent_was_killed(agent_here, jobs):
    check_counted(jobs, killed_in_two_runs(jobs, retries=2), runs=3)


def test_files_that_a_power_cut_emptied_are_not_copied_over_the_checkpoints(agent_here, jobs):
    # In the first run the checkpoint of step 5 is replaced ten times a second, by one that is the same.
    again = """while (number, step) == (5, "0"):
            draft.write_text(f"{number + 1} {digest}")
            draft.rename(checkpoint)
            time.sleep(0.1)"""
    script = COUNTS.replace("time.sleep(0.1)", again)
    name = start_counting(jobs, script=script, RetryStrategy={"MaximumRetryAttempts": 1})
    kept = file_path(jobs.job_folder(name).read_job().request.output.checkpoint_uri)
    # Under their own names: a file that is still being copied has another one.
    until(lambda: all((kept / host).exists() for host in ("algo-1", "algo-2")))
    folder = kill_agent(jobs, name)
    for host in folder.hosts.iterdir():
        # There is a name, and no content.
        (host / "checkpoints" / host.name).write_bytes(b"")
    content = folder.lock_file.read_bytes()
    folder.lock_file.write_bytes(b"0" + content[1:] if content[:1] != b"0" else b"1" + content[1:])
    check_counted(jobs, name, runs=2)


def test_spot_training_goes_on_after_a_host_agent_was_killed(engine, jobs):
    limits = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 1200}
    name = start_counting(jobs, EnableManagedSpotTraining=True, StoppingCondition=limits)
    kill_host_agent(engine, jobs, name)
    check_counted(jobs, name, runs=2)


def test_a_job_without_retries_left_fails_and_says_how_often_it_was_started(agent_here, jobs):
    name = killed_in_two_runs(jobs, retries=1)
    reason = jobs.wait(name)["FailureReason"]
    assert "it had been started again 1 time, which is all of max_retry_attempts" in reason, reason
    until(lambda: not jobs.remains(name))


def test_a_job_that_is_found_without_agent_long_after_goes_on(agent_here, jobs):
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 1})
    folder = kill_agent(jobs, name)
    until(lambda: not jobs.processes(name))
    # As if the machine was off for longer than max_run.
    hour = 3600
    state = folder.read_state()
    moved = [replace(each, started=each.started - hour, ended=each.ended and each.ended - hour)
             for each in state.transitions]  # fmt: skip
    folder.write_state(replace(state, modified=state.modified - hour, transitions=tuple(moved)))
    for file in (folder.lock_file, *(folder.path / "logs").iterdir()):
        moment = file.stat().st_mtime - hour
        os.utime(file, (moment, moment))
    description = jobs.platform.describe(name).response
    assert description["SecondaryStatus"] == "Interrupted", description
    # The agent that starts is not silent.
    assert "answer" not in description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    check_counted(jobs, name, runs=2)


def test_a_job_whose_agent_is_told_to_end_uses_one_retry(agent_here, jobs):
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 1})
    jobs.kill(name, number=signal.SIGTERM)
    until(lambda: not jobs.job_folder(name).has_agent())
    assert jobs.job_folder(name).read_state().secondary == "Interrupted"
    check_counted(jobs, name, runs=2)


def test_a_process_without_standard_input_hands_over_the_lock(agent_here, jobs):
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 1})
    kill_agent(jobs, name)
    subprocess.run((sys.executable, "-c", READS, str(jobs.data_dir), name), check=True, timeout=600)
    assert jobs.job_folder(name).has_agent()
    check_counted(jobs, name, runs=2)


def test_a_job_of_another_user_is_left_to_that_user(agent_here, jobs):
    if os.geteuid():
        pytest.skip("the user root can give a directory away")
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 1})
    folder = kill_agent(jobs, name)
    os.chown(folder.path, 54321, -1)
    message = jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert message.endswith("the user with the number 54321 starts it again"), message
    assert not folder.has_agent()
    os.chown(folder.path, 0, -1)
    check_counted(jobs, name, runs=2)


def test_a_job_of_a_server_is_left_to_a_shell_with_its_s3(agent_here, jobs):
    tags = [{"Key": f"{SERVER_TAGS}client", "Value": "boto3"}]
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 1}, Tags=tags)
    folder = kill_agent(jobs, name)
    record = json.loads((folder.path / "job.json").read_text())
    kept, record["request"]["CheckpointConfig"]["S3Uri"] = record["request"]["CheckpointConfig"]["S3Uri"], "s3://b/c"
    (folder.path / "job.json").write_text(json.dumps(record))
    server = jobs.data_dir / SERVER_FILE
    server.parent.mkdir(exist_ok=True)
    server.write_text("http://127.0.0.1:9\nexport AWS_ENDPOINT_URL=http://127.0.0.1:9")
    message = jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert message.endswith("the variables that it prints, starts it again"), message
    assert not folder.has_agent()
    server.unlink()
    record["request"]["CheckpointConfig"]["S3Uri"] = kept
    (folder.path / "job.json").write_text(json.dumps(record))
    check_counted(jobs, name, runs=2)


def test_a_job_with_retries_that_is_stopped_does_not_start_again(jobs):
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 9})
    stop_counting(jobs, name)


def test_a_job_whose_agent_was_killed_is_stopped_without_a_start(agent_here, jobs):
    name = start_counting(jobs, RetryStrategy={"MaximumRetryAttempts": 9})
    kill_agent(jobs, name)
    stop_counting(jobs, name)


def test_a_killed_host_is_a_failure_also_with_retries_and_the_job_is_run_again_with_fewer_hosts(jobs):
    mirrored = {MULTI_WORKER_MIRRORED_ENABLED: True}
    name = start_counting(jobs, hyperparameters=mirrored, RetryStrategy={"MaximumRetryAttempts": 9})
    jobs.kill_host(name, "algo-2")
    assert jobs.wait(name)["TrainingJobStatus"] == "Failed"
    assert not any("starts again" in line for line in jobs.lines(name))
    until(lambda: not jobs.remains(name))
    again = TrainingJob(name, jobs.platform).rerun(job_name=f"{name}-on-one", instance_count=1)
    assert jobs.model(jobs.completed(again.name)) == {"algo-1": counted()}
    lines = jobs.lines(again.name)
    (began,) = [line for line in lines if ": from " in line]
    assert int(began.rpartition(" ")[2]) > 5
    (cluster,) = [line.partition("cluster ")[2] for line in lines if ": cluster " in line]
    hosts, config = cluster.split(" ", 1)
    assert (json.loads(hosts), len(json.loads(config)["cluster"]["worker"])) == (["algo-1"], 1)


def test_every_verb_notices_a_killed_agent(jobs):
    verbs = {
        "list": lambda _: jobs.platform.list() and None,
        "stop": jobs.platform.stop,
        "logs": lambda name: collections.deque(jobs.platform.log_events(name, follow=True), maxlen=0),
    }
    names = {verb: jobs.start(SLEEPS) for verb in verbs}
    for name in names.values():
        jobs.until_up(name)
        jobs.kill(name)
    for verb, name in names.items():
        until(lambda name=name: not jobs.remains(name))
        state = jobs.job_folder(name).path / "state.json"
        until(lambda verb=verb, name=name, state=state: verbs[verb](name) or '"Failed"' in state.read_text())


def kill_host_agent(engine, jobs, name):
    jobs.kill(name, "agent of algo-2" if engine.machine_of_each_host else "agent of algo-1")


def test_a_killed_host_agent_ends_its_hosts_and_is_the_reason(engine, jobs, channels):
    name = jobs.start(SLEEPS, hosts=2)
    jobs.until_up(name)
    kill_host_agent(engine, jobs, name)
    reason = jobs.wait(name)["FailureReason"]
    hosts = "algo-2" if engine.machine_of_each_host else "algo-1, algo-2"
    assert reason.startswith(f"InternalServerError: the agent of {hosts} "), reason
    assert engine.machine_of_each_host or reason.endswith(" was killed by SIGKILL, and so were its hosts")
    until(lambda: not jobs.remains(name))
    assert "algo-1: up" in jobs.lines(name)


def test_nothing_is_mounted_after_a_host_agent_was_killed(engine, jobs, channels):
    name = jobs.start(SLEEPS, hosts=2, channels=channels)
    jobs.until_up(name)
    assert bool(jobs.mounted(name)) == engine.mounts
    kill_host_agent(engine, jobs, name)
    jobs.wait(name)
    until(lambda: not {*jobs.remains(name)} - {*jobs.mounted(name)})
    assert not jobs.mounted(name)


def test_a_host_agent_ignores_sigterm(jobs):
    name = jobs.start(WAITS)
    jobs.until_up(name)
    jobs.kill(name, "agent of algo-1", signal.SIGTERM)
    jobs.release(name)
    jobs.completed(name)


def test_a_job_whose_directory_is_removed_ends_with_everything_of_it(engine, jobs, channels):
    # The script ignores SIGTERM, and the grace is longer than this test waits.
    name = jobs.start(KEEPS_WRITING, hosts=2, channels=channels, grace=2 * GENEROUS)
    jobs.until_up(name)
    assert bool(jobs.mounted(name)) == engine.mounts
    folder = jobs.job_folder(name).path
    shutil.rmtree(folder, ignore_errors=True)
    until(lambda: not jobs.remains(name))
    until(lambda: not folder.exists())
    assert name not in [each["TrainingJobName"] for each in jobs.platform.list()]
    with pytest.raises(JobNotFoundError):
        jobs.platform.describe(name)
    assert (jobs.folder / "two channels" / "part").stat().st_size == 100_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP], ids=["KILL", "HUP"])
def test_a_job_outlives_its_client(jobs, tmp_path, number):
    (tmp_path / "train.py").write_text(textwrap.dedent(WAITS))
    name = f"left-alone-{int(number)}"
    argv = (sys.executable, "-c", CLIENT, str(tmp_path), json.dumps(jobs.estimator_arguments()), name)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(jobs.data_dir)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as client:  # fmt: skip
        try:
            until(lambda: jobs.exists(name))
            jobs.until_up(name)
        finally:
            # As a terminal does it: to the client's whole process group.
            os.killpg(client.pid, number)
    jobs.release(name)
    jobs.completed(name)
    assert "algo-1: over" in jobs.lines(name)
