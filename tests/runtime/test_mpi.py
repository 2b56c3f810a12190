"""What Open MPI says and asks for, in the words of 4.1.4 and 5.0.11: the rank that failed, and daemons."""

import pytest

from scriptmode_runtime._mpi.daemon_command import parse
from scriptmode_runtime._mpi.mpirun_output import RankFailure, cause_of, first_failure, lines_of_rank
from scriptmode_runtime._values.cluster import parse as parse_cluster
from scriptmode_runtime._values.errors import ClusterError
from scriptmode_runtime.rank import set_world

RULER = "-" * 74 + "\n"
FOUR_ABORTS_THE_JOB = f"""{RULER}Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{RULER}"""
FOUR = f"""{RULER}mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[27340,1],1]
  Exit code:    3
{RULER}"""
FOUR_KILLED = f"{RULER}mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed).\n{RULER}"
FIVE = f"""{RULER}prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-3725@1,1]
   Exit code:    3
{RULER}"""
FIVE_KILLED = (
    f"{RULER}prterun noticed that process rank 1 with PID 3743 on node vm exited on\nsignal 9 (Killed).\n{RULER}"
)
ABORT_FIVE = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n  Proc: [[1,1],1]\n  Errorcode: 7\n"
ABORT_FOUR = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (FOUR_ABORTS_THE_JOB + FOUR, 3), (FIVE, 3), (FOUR_KILLED, -9), (FIVE_KILLED, -9), (ABORT_FOUR, 7),
        (ABORT_FIVE, 7),
    ],
    ids=["4 exits", "5 exits", "4 killed", "5 killed", "4 aborts", "5 aborts"],
)  # fmt: skip
def test_mpirun_names_the_rank_that_failed_first(text, status):
    failure = first_failure(f"[1,0]<stdout>: rank 0\n{text}")
    assert (failure.rank, failure.status) == (1, status)
    assert first_failure("There are not enough slots available in the system") is None


def test_the_rank_whose_error_shut_horovod_down_is_the_cause_not_the_one_that_exits_first():
    shut, own = (f"[1,{{0}}]<stderr>:Traceback (most recent call last):\n[1,{{0}}]<stderr>:{text}\n" for text in (
        "UnknownError: Horovod has been shut down. This was caused by an exception on one of the ranks", "ValueError: x"))  # fmt: skip
    first = RankFailure(0, 1, "algo-1", "words of rank 0")
    assert cause_of(first, shut.format(2) + shut.format(0) + own.format(1)) == RankFailure(1, 1)
    assert cause_of(first, shut.format(2) + shut.format(0)) == first
    assert cause_of(first, own.format(0) + own.format(1)) == first


TAGS = {
    "4": "[1,{}]<stderr>:", "4 with times": "Sat Nov 21 13:01:14 2026[1,{}]<stderr>:", "5": "[1,{}]<stderr>: ",
    "5 with times": "[Sat Nov 21 13:00:42 2026][1,{}]<stderr>: ", "5 detailed": "[1,{}][vm:28758]<stderr>: ",
    "5 with names": "[prterun-vm-28761@1,{}]<stderr>: ", "5 with ranks alone": "[{}]<stderr>: ",
}  # fmt: skip


@pytest.mark.parametrize("tag", TAGS.values(), ids=TAGS.keys())
def test_a_ranks_lines_lose_their_tags_and_keep_their_indent(tag):
    zero, one = tag.format(0), tag.format(1)
    output = f"{zero}zero\n{one}Traceback\n{one}  File\n{one}\n{one}ValueError: x\n{FIVE}"
    assert lines_of_rank(output, 1) == "Traceback\n  File\n\nValueError: x"


def test_a_line_that_open_mpi_4_tags_in_the_middle_is_one_line():
    output = (
        "[1,1]<stdout>:part[1,1]<stderr>:err  indented\n"
        "[1,1]<stderr>:ValueError[1,0]<stdout>:other[1,1]<stderr>:: x\n[1,1]<stderr>: y\n"
    )
    assert lines_of_rank(output, 1) == "part\nerr  indented\nValueError: x\n y"


def test_what_stands_behind_mpiruns_own_words_is_the_ranks_too():
    output = f"[1,1]<stderr>: ValueError: x\n{FIVE}[1,1]<stdout>: part[1,0]<stdout>: part"
    assert lines_of_rank(output, 1) == "ValueError: x\npart"


@pytest.mark.parametrize("end", [FOUR_ABORTS_THE_JOB + FOUR, FIVE, FIVE_KILLED], ids=["4", "5", "5 killed"])
def test_without_tags_everything_but_mpiruns_own_words_is_given(end):
    own = f"{RULER}a ruler of the script's\n"
    assert lines_of_rank(f"zero\n{own}ValueError: x\n{end}part", 1) == f"zero\n{own}ValueError: x\npart"


@pytest.mark.parametrize(
    "word", ["-", "[", "[1,", "[1,0]<stdout>:", "-" * 60 + "\n", "Process name: [", "MPI_ABORT was invoked on rank 1"]
)
@pytest.mark.timeout(60)
def test_no_output_keeps_the_report_waiting(word):
    output = (word * 65_536)[:65_536]
    first_failure(output)
    lines_of_rank(output, 1)


#: As Open MPI 4.1.4 and 5.0.11 wrote them, shortened.
ORTED = (
    "          PATH=/usr/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/usr/lib:${LD_LIBRARY_PATH:-} ; export LD_LIBRARY_PATH ;"
    '   /usr/bin/orted -mca ess "env" -mca orte_hnp_uri "1435631616.0;tcp://10.99.0.1:56409" -mca pmix "^s1,s2,cray" --mca plm_rsh_agent "/theirs/rsh"'
)
PRTED = (
    "PRTE_PREFIX=/opt/mpi;export PRTE_PREFIX;LD_LIBRARY_PATH=/opt/mpi/lib:$LD_LIBRARY_PATH;export LD_LIBRARY_PATH;"
    '/opt/mpi/bin/prted --allow-run-as-root --prtemca ess "env" --prtemca prte_hnp_uri "prterun-a-1@0.0;tcp://10.9.0.1:4"'
)


def test_open_mpi_4s_daemon_is_found():
    spec = parse(ORTED, {"PATH": "/bin", "LD_LIBRARY_PATH": "/lib"}, "/", "/own/rsh")
    agent = ("--mca", "plm_rsh_agent", "/own/rsh")
    words = "-mca ess env -mca orte_hnp_uri 1435631616.0;tcp://10.99.0.1:56409 -mca pmix ^s1,s2,cray"
    assert spec.argv == ("/usr/bin/orted", *words.split(), *agent)
    assert spec.env == {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/usr/lib:/lib"}
    assert spec.stop == "ranks"


def test_open_mpi_5s_daemon_is_found():
    spec = parse(PRTED, {}, "/", "/own/rsh")
    assert spec.argv[0] == "/opt/mpi/bin/prted"
    assert spec.argv[-1] == "prterun-a-1@0.0;tcp://10.9.0.1:4"
    assert spec.env == {"PRTE_PREFIX": "/opt/mpi", "LD_LIBRARY_PATH": "/opt/mpi/lib:"}


@pytest.mark.parametrize("command", [ORTED, PRTED])
def test_what_a_login_shell_sh_adds_is_left_out(command):
    wrapped = f"( test ! -r ./.profile || . ./.profile; {command} )"
    assert parse(wrapped, {}, "/", "/own/rsh") == parse(command, {}, "/", "/own/rsh")


@pytest.mark.parametrize(
    "command",
    ["", "rm -rf /", "touch orted", "A=b ; export A", 'orted "unclosed', "orted; rm -rf /", "/bin/sh -c orted"],
)
def test_anything_but_a_daemon_is_refused(command):
    with pytest.raises(ClusterError):
        parse(command, {}, "/", "/own/rsh")


def test_nothing_is_expanded_but_variables():
    spec = parse("A=$(id)`id`;export A;orted '$(id)' $HOME * ~", {"HOME": "/root"}, "/", "/own/rsh")
    assert spec.argv == ("orted", "$(id)", "$HOME", "*", "~")
    assert spec.env == {"A": "$(id)`id`"}


OF_MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip
ON_SAGEMAKER = {
    "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "algo-1",
    "MASTER_PORT": "29500", "JAX_COORDINATOR_ADDRESS": "algo-1:8476",
}  # fmt: skip
#: Variables by which JAX takes its processes from Open MPI's variables, with 5 as with 4.
JAX_DETECTS, JAX_REQUIRES_MPI4PY = "OMPI_MCA_orte_hnp_uri", "OMPI_VERSION"


@pytest.mark.parametrize(
    ("before", "document", "after"),
    [
        pytest.param({JAX_REQUIRES_MPI4PY: "5.0.11"}, {}, {JAX_DETECTS: "0.0;tcp://algo-1:8476"}, id="Open MPI 5"),
        pytest.param({JAX_DETECTS: "1.0;tcp://x:1"}, {}, {JAX_DETECTS: "1.0;tcp://x:1"}, id="Open MPI 4"),
        pytest.param(dict.fromkeys(ON_SAGEMAKER, "own"), {}, dict.fromkeys(ON_SAGEMAKER, "own") | {
            JAX_DETECTS: "0.0;tcp://algo-1:8476"}, id="the job's own values"),
        pytest.param({}, {"single_machine": True, "hosts": {
            "algo-1": {"address": "::1", "ports": {"torch": 5, "jax": 6}}}}, {
            "MASTER_ADDR": "::1", "MASTER_PORT": "5", "JAX_COORDINATOR_ADDRESS": "[::1]:6",
            "JAX_COORDINATOR_BIND_ADDRESS": "[::1]:6", JAX_DETECTS: "0.0;tcp6://[::1]:6"}, id="one machine"),
    ],
)  # fmt: skip
def test_a_rank_has_the_variables_of_torchrun_and_jax(before, document, after):
    cluster = parse_cluster(document, ["algo-1", "algo-2"], "algo-2", "/opt/ml")
    assert set_world({**OF_MPIRUN, **before}, cluster) == {**OF_MPIRUN, **ON_SAGEMAKER, **after}
