"""What a job lost is told wherever its outcome is: describe, its JSON, the last lines of run, the card, and the errors."""

import json
import os
import signal

import pytest
from fakes.command_line import program

from scriptmode import TrainingJob
from scriptmode._core.spec.service_values import JobEvent
from scriptmode.errors import TrainingJobFailed
from scriptmode_local._data.durable import RESERVED_BYTES
from scriptmode_local._store import agent_log
from scriptmode_local._store.state import MOST_EVENTS, starting_state, state_from_json

#: Loses a deep directory, the data directory of the output, and a name of two hosts.
LOSES = """
    import os, pathlib, shutil
    place = os.environ["SM_MODEL_DIR"]
    open(os.path.join(place, "whole"), "w").write("1")
    for _ in range(205):
        place = os.path.join(place, "d")
        os.mkdir(place)
    open(os.path.join(place, "lost"), "w").write("2")
    pathlib.Path(os.environ["SM_MODEL_DIR"], "weights").write_text(os.environ["SM_CURRENT_HOST"])
    if os.environ["SM_CURRENT_HOST"] == "algo-1":
        folder = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
        shutil.rmtree(folder)
        folder.write_text("a file")
"""
LOST = (
    "are left out: the directory was replaced by a link or a file",
    "is left out: its files more than 200 directories deep",
    "model: algo-2's 'weights' is left out: algo-1 has 'weights' too",
)


def told(platform, name):
    """What each view says of a job's losses."""
    job = TrainingJob(name, platform)
    described = json.loads(program("describe", name, "--json").stdout)
    return {
        "python": [str(each) for each in job.events],
        "json": [each["message"] for each in described.get("Events", ())],
        "text": program("describe", name).stdout,
        "card": job._repr_html_().replace("&#x27;", "'"),
    }


@pytest.mark.slow
def test_what_is_left_out_of_the_output_is_told_by_every_view(jobs, jobs_of_the_command):
    name = jobs.start(LOSES, hosts=2)
    jobs.completed(name)
    found = told(jobs.platform, name)
    for words in LOST:
        assert any(words in message for message in found["python"])
    assert found["json"] == found["python"]
    for message in found["python"]:
        assert message in found["text"]
        assert f"warning: {message}" in found["card"]
    assert [job.get("StatusMessage") for _ in range(2) for job in jobs.platform.list()] == [None] * 2
    events = {(event.reason, event.is_loss, event.count) for event in jobs.platform.events(name)}
    assert events == {("OutputLeftOut", True, 1)}


@pytest.mark.slow
def test_a_failed_job_tells_it_in_its_error(jobs):
    name = jobs.start(
        """
        import os, pathlib, shutil, sys
        folder = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
        shutil.rmtree(folder)
        folder.write_text("a file")
        sys.exit("no data in the channel")
        """
    )
    with pytest.raises(TrainingJobFailed, match="no data in the channel") as raised:
        TrainingJob(name, jobs.platform).wait()
    assert "warning:" in str(raised.value)
    assert "the directory was replaced by a link or a file" in str(raised.value)


def test_equal_events_count_as_one_and_many_are_bounded():
    state = starting_state("job-1", "arn", 0.0)
    for number in range(3):
        state = state.with_event(JobEvent("Interrupted", "it was preempted", time=float(number)))
    assert [(each.count, each.time) for each in state.events] == [(3, 2.0)]
    for number in range(1000):
        state = state.with_event(JobEvent("OutputLeftOut", f"{number} is left out" + "x" * 1000))
    assert len(state.events) == MOST_EVENTS
    assert sum(each.count for each in state.events) == 1003
    assert max(len(each.message) for each in state.events) <= 500
    assert state_from_json(json.loads(json.dumps(state.to_json()))) == state


@pytest.mark.parametrize("character", ["x", "ü", "\U0001f600", "\0"])
def test_events_fit_into_the_space_that_is_reserved_for_the_final_state(character):
    state = starting_state("job-1", "arn", 0.0)
    for number in range(100):
        state = state.with_event(JobEvent("OutputLeftOut", f"{number} {character * 1000}", "algo-1"))
    assert len(json.dumps(state.to_json(), indent=1)) < RESERVED_BYTES


def test_a_long_message_counts_with_its_equal_and_a_loss_stays_one_among_many_events():
    state = starting_state("job-1", "arn", 0.0)
    for _ in range(3):
        state = state.with_event(JobEvent("OutputLeftOut", "x" * 1000))
    assert [each.count for each in state.events] == [3]
    for number in range(MOST_EVENTS - 1):
        state = state.with_event(JobEvent("OutputLeftOut", f"{number} is left out"))
    state = state.with_event(JobEvent("Interrupted", "it was preempted"))
    assert (state.events[-1].is_loss, state.events[-1].count) == (True, 2)


def test_a_job_whose_agent_died_has_the_losses_of_its_logs(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)")
    jobs.until_line(name, "up")
    folder = jobs.job_folder(name)
    text = "7 lines (100 bytes) of this log could not be written and are missing here: No space left on device"
    agent_log.append_line(folder.log("algo-1"), f"scriptmode: {text}")
    os.kill(jobs.agent(name).pid, signal.SIGKILL)
    assert jobs.wait(name)["TrainingJobStatus"] == "Failed"
    (event,) = jobs.platform.events(name)
    assert (event.reason, event.host, event.is_loss) == ("LogLost", "algo-1", True)


def test_losses_come_before_what_was_done_again(jobs):
    name = jobs.start("pass")
    jobs.completed(name)
    folder = jobs.job_folder(name)
    state = folder.read_state().with_event(JobEvent("Interrupted", "the job started again"))
    folder.write_state(state.with_event(JobEvent("LogLost", "7 lines")))
    assert [each.reason for each in jobs.platform.events(name)] == ["LogLost", "Interrupted"]


def test_a_failed_job_tells_that_its_artifacts_were_not_delivered(jobs, tmp_path):
    destination = tmp_path / "destination"
    script = f"""
        import os, pathlib, shutil, sys
        pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "kept").write_text("1")
        shutil.rmtree({str(destination)!r}, ignore_errors=True)
        pathlib.Path({str(destination)!r}).write_text("a file")
        sys.exit("no data in the channel")
    """
    name = jobs.start(script, more={"OutputDataConfig": {"S3OutputPath": f"file://{destination}"}})
    assert "no data in the channel" in jobs.wait(name)["FailureReason"]
    (event,) = jobs.platform.events(name)
    assert (event.reason, event.is_loss) == ("OutputLeftOut", True)
    assert event.message.startswith("the artifacts were not delivered: ")


def test_a_state_with_damaged_events_is_refused():
    content = json.loads(json.dumps(starting_state("job-1", "arn", 0.0).to_json()))
    for events in ([1], [{"reason": 1}], [{"reason": "x"}]):
        with pytest.raises((ValueError, TypeError)):
            state_from_json({**content, "events": events})


def test_the_notices_of_a_log_are_added_up(tmp_path, monkeypatch):
    log = tmp_path / "algo-1"
    assert agent_log.describe_loss(log, "algo-1") == ""
    log.write_text("")
    assert agent_log.describe_loss(log, "algo-1") == ""
    notice = "scriptmode: {} lines ({} bytes) of this log could not be written and are missing here: No space left\n"
    log.write_text(f"a\n{notice.format(2, 100)}b\n{notice.format(1000, 2_000_000)}")
    expected = "1,002 lines (2.0 MB) of the log of algo-1 could not be written: No space left"
    assert agent_log.describe_loss(log, "algo-1") == expected
    # A long log is read in pieces.
    monkeypatch.setattr(agent_log, "CHUNK", 50)
    notice = notice.format(2, 100)
    log.write_text(f"{'x' * 3000}\n{notice}" + f"b\n{notice}" * 3)
    assert agent_log.describe_loss(log, "algo-1").startswith("8 lines (400 bytes)")
    log.write_text(f"b\n{notice}".rstrip("\n"))
    assert agent_log.describe_loss(log, "algo-1").startswith("2 lines (100 bytes)")
