"""Jobs that fail: the reason and its parts, what is kept, and that the first failure ends every host."""

import time

import pytest
from fakes.local_jobs import SLEEPS, damaged_manifest, unpacked
from fakes.processes import until
from fakes.promptness import soon

from scriptmode import TrainingJob, TrainingJobFailed

#: A script, the fields of its job, the parts of its `Failure`, and what the reason begins, and ends, with.
FAILURES = {
    "exception": (
        """
        try:
            {}["lr"]
        except KeyError as error:
            raise ValueError("no rate") from error
        """,
        {},
        {"cause": "algo-1, script: exit code 1", "process": "script", "exit_code": 1, "exception": "ValueError"},
        ("AlgorithmError: algo-1, script: exit code 1", "ValueError: no rate, exit code: 1"),
    ),
    "exit code": (
        """
        import os
        with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], "trace"), "w") as file:
            file.write("t")
        print("the last words")
        raise SystemExit(3)
        """,
        {},
        {"cause": "algo-1, script: exit code 3", "exit_code": 3, "exception": "", "traceback": "the last words"},
        ("AlgorithmError: algo-1, script: exit code 3", ", exit code: 3"),
    ),
    "signal": (
        """
        import os
        for number in range(40):
            print(number, "x" * 60, flush=True)
        os.kill(os.getpid(), 9)
        """,
        {},
        {"process": "script", "exit_code": 137, "signal": "SIGKILL", "exception": ""},
        (
            "AlgorithmError: algo-1, script: killed by SIGKILL\nIf it was not killed on purpose, memory ran out: ",
            f"39 {'x' * 60}, exit code: 137",
        ),
    ),
    "module": (
        "import no_such_module", {}, {"exit_code": 1, "exception": "ModuleNotFoundError"},
        ("AlgorithmError: algo-1, script: exit code 1\nno_such_module is not installed", ", exit code: 1"),
    ),
    "syntax": (
        "def broken(:\n    pass", {}, {"exit_code": 1, "exception": "SyntaxError"},
        ("AlgorithmError: algo-1, script: exit code 1", ", exit code: 1"),
    ),
    "long line": (
        "print('x' * 5000); raise KeyError('k')", {}, {"exit_code": 1, "exception": "KeyError"},
        ("AlgorithmError: algo-1, script: exit code 1", "KeyError: 'k', exit code: 1"),
    ),
    "secret": (
        "import os, json; raise ValueError(json.loads(os.environ['SM_HPS'])['db_password'])",
        {"hyperparameters": {"db_password": "correct-horse-battery"}},
        {"exception": "ValueError"},
        ("AlgorithmError: algo-1, script: exit code 1", "ValueError: ******, exit code: 1"),
    ),
    "own words": (
        """
        import os
        with open(os.path.join(os.environ["SM_OUTPUT_DIR"], "failure"), "w") as file:
            file.write("row 3 has no label")
        raise SystemExit(4)
        """,
        {},
        {"cause": "algo-1, script: exit code 4", "exit_code": 4, "traceback": "row 3 has no label"},
        ("AlgorithmError: row 3 has no label", ", exit code: 4"),
    ),
    "entry point": (
        "",
        {"hyperparameters": {"sagemaker_program": "missing.py"}},
        {"host": "algo-1", "process": "launcher", "exit_code": 1},
        ("AlgorithmError: algo-1: the entry point 'missing.py' is not in the source", ", exit code: 1"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def names(jobs):
    """Start a job for each failure, all at once; return their names."""
    return {label: jobs.start(script, **fields) for label, (script, fields, _, _) in FAILURES.items()}


@pytest.mark.parametrize("label", FAILURES)
def test_a_failure_has_its_host_process_exit_code_and_cause(jobs, names, label):
    _, fields, parts, (begin, end) = FAILURES[label]
    description = jobs.wait(names[label])
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Failed"
    assert description["ModelArtifacts"] == {"S3ModelArtifacts": ""}
    reason = description["FailureReason"]
    assert reason.startswith(begin), reason
    assert reason.endswith(end), reason
    with pytest.raises(TrainingJobFailed) as caught:
        TrainingJob(names[label], jobs.platform).wait()
    failure = caught.value.failure
    wanted = {"host": "algo-1", **parts}
    assert {name: getattr(failure, name) for name in wanted} == wanted
    for secret in (fields.get("hyperparameters") or {}).values():
        assert secret == "missing.py" or secret not in reason + repr(failure)
    until(lambda: not jobs.remains(names[label]))


def test_the_traceback_is_whole(jobs, names):
    jobs.wait(names["exception"])
    with pytest.raises(TrainingJobFailed) as caught:
        TrainingJob(names["exception"], jobs.platform).wait()
    first, *between, last = caught.value.failure.traceback.splitlines()
    assert (first, last) == ("Traceback (most recent call last):", "ValueError: no rate")
    assert "KeyError: 'lr'" in between


def test_a_failed_job_delivers_its_output_and_keeps_the_directories_of_its_hosts(jobs, names):
    jobs.wait(names["exit code"])
    folder = jobs.job_folder(names["exit code"])
    assert unpacked(folder.output / "output.tar.gz") == {"trace": b"t"}
    assert not (folder.output / "model.tar.gz").exists()
    assert (folder.host("algo-1") / "output" / "failure").exists()


def test_an_input_that_cannot_be_read_fails_the_job_with_its_channel(jobs):
    name = jobs.start("pass", channels=[damaged_manifest(jobs.folder)])
    assert jobs.wait(name)["FailureReason"].startswith("ClientError: Data download failed: channel 'train', file://")
    with pytest.raises(TrainingJobFailed) as caught:
        TrainingJob(name, jobs.platform).wait()
    assert (caught.value.failure.process, caught.value.failure.exit_code) == ("", None)


#: The second host fails once the file is there.
SECOND_HOST_FAILS_OTHERS_IGNORE_SIGTERM = """
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", flush=True)
    while not (os.environ["SM_CURRENT_HOST"] == "algo-2" and os.path.exists("/opt/ml/checkpoints/go")):
        time.sleep(0.02)
    raise RuntimeError("the reason is here")
"""


def ended_soon(engine, jobs, name):
    """Wait for the end of a failed job, of which nothing may remain soon; return its description."""
    begun = time.monotonic()
    description = jobs.wait(name)
    until(lambda: not jobs.remains(name))
    soon(time.monotonic() - begun, engine.seconds_to_end)
    assert description["TrainingJobStatus"] == "Failed"
    return description


@pytest.mark.prompt
def test_the_first_host_to_fail_is_the_reason_and_ends_the_others(engine, jobs):
    name = jobs.start(SECOND_HOST_FAILS_OTHERS_IGNORE_SIGTERM, hosts=engine.hosts)
    jobs.until_up(name)
    jobs.release(name, "algo-2")
    reason = ended_soon(engine, jobs, name)["FailureReason"]
    assert reason.startswith("AlgorithmError: algo-2, script: exit code 1\n")
    assert reason.endswith("RuntimeError: the reason is here, exit code: 1")


@pytest.mark.prompt
def test_a_host_that_is_killed_fails_the_job(engine, jobs, channels):
    mirrored, host = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}, "algo-1"
    name = jobs.start(SLEEPS, hosts=engine.hosts, channels=channels, hyperparameters=mirrored)
    jobs.until_up(name)
    assert bool(jobs.mounted(name)) == engine.mounts
    jobs.kill_host(name, host)
    reason = ended_soon(engine, jobs, name)["FailureReason"]
    assert reason.startswith(f"AlgorithmError: {host}: the host's launcher was killed by SIGKILL"), reason
    assert reason.endswith(", exit code: 137")
