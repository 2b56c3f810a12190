"""Keys for ssh: what is said where none can be made."""

import pytest

from scriptmode_runtime.cluster import parse
from scriptmode_runtime.errors import ClusterError
from scriptmode_runtime.host.programs import Ssh
from scriptmode_runtime.mpi.ssh_keys import Keys


def keys(tmp_path, script):
    keygen = tmp_path / "ssh-keygen"
    if script is not None:
        keygen.write_text(f"#!/bin/sh\n{script}\n")
        keygen.chmod(0o755)
    alone = parse(None, ["algo-1"], "algo-1", str(tmp_path))
    Keys(Ssh("/ssh", "/sshd", str(keygen)), alone, str(tmp_path))


@pytest.mark.parametrize(
    ("script", "reason", "remedy"),
    [
        pytest.param(
            "printf 'a\\nunknown key type ed25519\\n\\n' >&2; exit 255",
            "unknown key type ed25519;",
            "correct that",
            id="words",
        ),
        pytest.param("printf 'caf\\351\\n' >&2; exit 1", "caf\ufffd;", "correct that", id="words in another encoding"),
        pytest.param("exit 3", "exit status 3", "correct that", id="no words"),
        pytest.param("exit 0", "No such file or directory", "correct that", id="no key"),
        pytest.param(None, "No such file or directory", "install OpenSSH", id="no program"),
    ],
)
def test_an_error_of_ssh_keygen_has_its_reason_and_the_next_step(tmp_path, script, reason, remedy):
    with pytest.raises(ClusterError) as caught:
        keys(tmp_path, script)
    said = str(caught.value)
    assert said.startswith(f"algo-1: no ssh key can be created in {tmp_path}: ")
    assert reason in said
    assert said.endswith(f"; {remedy}, or leave SCRIPTMODE_MPI_LAUNCHER out")
