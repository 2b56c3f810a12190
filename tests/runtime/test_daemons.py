"""What mpirun asks for on another host: taken apart, never given to a shell."""

import pytest

from scriptmode_runtime.errors import ClusterError
from scriptmode_runtime.mpi.daemon_command import parse

#: As Open MPI 4.1.4 and 5.0.11 wrote them, shortened.
FOUR = (
    "          PATH=/usr/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/usr/lib:${LD_LIBRARY_PATH:-} ; export LD_LIBRARY_PATH ;"
    '   /usr/bin/orted -mca ess "env" -mca orte_hnp_uri "1435631616.0;tcp://10.99.0.1:56409" -mca pmix "^s1,s2,cray" --mca plm_rsh_agent "/theirs/rsh"'
)
FIVE = (
    "PRTE_PREFIX=/opt/mpi;export PRTE_PREFIX;LD_LIBRARY_PATH=/opt/mpi/lib:$LD_LIBRARY_PATH;export LD_LIBRARY_PATH;"
    '/opt/mpi/bin/prted --allow-run-as-root --prtemca ess "env" --prtemca prte_hnp_uri "prterun-a-1@0.0;tcp://10.9.0.1:4"'
)


def test_open_mpi_4s_daemon_is_found():
    spec = parse(FOUR, {"PATH": "/bin", "LD_LIBRARY_PATH": "/lib"}, "/", "/own/rsh")
    agent = ("--mca", "plm_rsh_agent", "/own/rsh")
    words = "-mca ess env -mca orte_hnp_uri 1435631616.0;tcp://10.99.0.1:56409 -mca pmix ^s1,s2,cray"
    assert spec.argv == ("/usr/bin/orted", *words.split(), *agent)
    assert spec.env == {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/usr/lib:/lib"}
    assert spec.stop == "ranks"


def test_open_mpi_5s_daemon_is_found():
    spec = parse(FIVE, {}, "/", "/own/rsh")
    assert spec.argv[0] == "/opt/mpi/bin/prted"
    assert spec.argv[-1] == "prterun-a-1@0.0;tcp://10.9.0.1:4"
    assert spec.env == {"PRTE_PREFIX": "/opt/mpi", "LD_LIBRARY_PATH": "/opt/mpi/lib:"}


@pytest.mark.parametrize("command", [FOUR, FIVE])
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
