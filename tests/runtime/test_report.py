"""What the failure file says."""

import json

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import environment
from scriptmode_runtime.hints import hint
from scriptmode_runtime.mpirun_output import first_failure, lines_of
from scriptmode_runtime.plan import ProcessSpec
from scriptmode_runtime.report import describe, excerpt

SCRIPT = ProcessSpec("script", ("/venv/bin/python", "train.py"), {}, "/")
FOUR = """--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[27340,1],1]
  Exit code:    3
--------------------------------------------------------------------------
"""
FOUR_KILLED = "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed).\n"
FIVE = """prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-3725@1,1]
   Exit code:    3
"""
FIVE_KILLED = "prterun noticed that process rank 1 with PID 3743 on node vm exited on\nsignal 9 (Killed).\n"
ABORT_FIVE = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n  Proc: [[1,1],1]\n  Errorcode: 7\n"
ABORT_FOUR = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [(FOUR, 3), (FIVE, 3), (FOUR_KILLED, -9), (FIVE_KILLED, -9), (ABORT_FOUR, 7), (ABORT_FIVE, 7)],
    ids=["4 exits", "5 exits", "4 killed", "5 killed", "4 aborts", "5 aborts"],
)
def test_mpirun_names_the_rank_that_failed_first(text, status):
    failure = first_failure(f"[1,0]<stdout>: rank 0\n{text}")
    assert (failure.rank, failure.status) == (1, status)


def test_another_end_of_mpirun_names_no_rank():
    assert first_failure("There are not enough slots available in the system") is None


@pytest.mark.parametrize("blank", ["", " "], ids=["Open MPI 4", "Open MPI 5"])
def test_a_ranks_lines_lose_their_tags_and_keep_their_indent(blank):
    output = f"[1,0]<stdout>:{blank}zero\n[1,1]<stderr>:{blank}Traceback\n[1,1]<stderr>:{blank}  File\n"
    assert lines_of(output, 1) == "Traceback\n  File"


def described(tmp_path, spec, status, output, count=2, **hyperparameters):
    hosts = [f"algo-{number + 1}" for number in range(count)]
    base = write_host(tmp_path / "ml", hosts=hosts, **hyperparameters)
    return describe(environment.read(str(base), {}), spec, status, output)


@pytest.mark.parametrize(("text", "code"), [(FOUR, 3), (FIVE_KILLED, 137)], ids=["exit code", "signal"])
def test_a_rank_is_named_with_the_host_it_ran_on(tmp_path, text, code):
    spec = SCRIPT._replace(name="mpirun")
    output = f"[1,1]<stderr>: it broke\n[1,0]<stdout>: fine\n{text}"
    cause = described(tmp_path, spec, 99, output, sagemaker_mpi_enabled=True)
    assert (cause.host, cause.process, cause.exit_code) == ("algo-2", "rank 1", code)
    assert "it broke" in cause.message
    assert "fine" not in cause.message


@pytest.mark.parametrize(
    ("status", "line", "code"),
    [
        (3, "exit code 3", 3),
        (-9, "killed by SIGKILL", 137),
        (-11, "killed by SIGSEGV", 139),
        (-99, "killed by signal 99", 227),
        (0, "ended while it was still needed", 1),
    ],
)
def test_the_first_line_is_host_process_and_end(tmp_path, status, line, code):
    cause = described(tmp_path, SCRIPT, status, "the end\n")
    assert cause.message.splitlines()[0] == f"algo-1, script: {line}"
    assert cause.message.splitlines()[-1] == "the end"
    assert cause.exit_code == code


def test_the_end_of_a_traceback_is_never_cut_out():
    frames = "".join(f'  File "m{n}.py", line {n}, in f\n    f{n}()\n' for n in range(200))
    text = excerpt(f"noise\nTraceback (most recent call last):\n{frames}ValueError: the loss is not a number\n", 500)
    assert text.startswith("[...]\n  ")
    assert text.endswith("ValueError: the loss is not a number")
    assert len(text) <= 500


def test_a_long_last_message_shows_its_beginning_and_its_end():
    text = excerpt(
        "Traceback (most recent call last):\n  File\n" + f"InvalidArgumentError: {'x' * 5000}\nthe very end\n", 600
    )
    assert text.startswith("InvalidArgumentError: xxx")
    assert " [...] " in text
    assert text.endswith("the very end")
    assert len(text) <= 600


def test_overwritten_progress_and_colours_are_left_out():
    assert excerpt("\x1b[31m1/9\r2/9\r9/9 done\x1b[0m\r\nend\r\n", 100) == "9/9 done\nend"


@pytest.mark.parametrize("room", [0, 1, 6, 50, 199, 230])
def test_an_excerpt_never_exceeds_its_room(room):
    assert len(excerpt("Traceback (most recent call last):\n x\n" + "E: " + "y" * 999, room)) <= room


@pytest.mark.parametrize(
    ("output", "code", "advice"),
    [
        ("ModuleNotFoundError: No module named 'horovod'", 1, "Horovod is not installed in /venv/bin/python"),
        ("ModuleNotFoundError: No module named 'pandas.core'", 1, "pandas is not installed in /venv/bin/python"),
        ("OSError: [Errno 28] No space left on device", 1, "The disk is full"),
        ("MemoryError", 1, "Memory ran out"),
        ("", 137, "If nobody killed it, memory ran out"),
        ("ValueError: Disallowed task type found in cluster spec", 1, "takes a chief"),
        ("Could not start gRPC server", 1, "worker 0 listens at algo-1:2222"),
        ("ValueError: no", 1, ""),
    ],
)
def test_the_usual_mistakes_come_with_the_next_step(output, code, advice):
    config = {"cluster": {"worker": ["algo-1:2222"]}, "task": {"type": "worker", "index": 0}}
    spec = SCRIPT._replace(env={"TF_CONFIG": json.dumps(config)})
    found = hint(output, code, spec)
    assert found.startswith(advice) if advice.startswith(("H", "p", "T", "M", "I")) else advice in found
