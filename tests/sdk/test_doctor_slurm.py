"""The checks of a Slurm cluster, with programs in place of Slurm's."""

import sys

import pytest
from fakes.slurm_programs import Programs

from scriptmode.doctor import slurm_checks

#: Runs the command of a step here, after the options.
RUN = 'while [ "$1" != "$PYTHON" ]; do shift; done; exec "$@"'


@pytest.fixture
def programs(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "data").mkdir()
    for name, value in {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "PYTHON": sys.executable,
        "SCRIPTMODE_DATA_DIR": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path),
        "SCRIPTMODE_SLURM": "account=vision",
    }.items():
        monkeypatch.setenv(name, value)
    found = Programs(tmp_path / "bin")
    partitions = "".join(f"PartitionName={name} State={state} TotalNodes=1\n" for name, state in STATES.items())
    found.add("scontrol", f"case \"$*\" in *config) echo 'SLURM_VERSION = 22.05.8';; *) printf '{partitions}';; esac")
    return found


STATES = {"batch": "UP", "gpu": "UP", "old": "DOWN"}


def test_a_node_of_each_partition_that_is_up_writes_what_this_machine_reads(programs, tmp_path):
    programs.add("srun", f'echo "$@" >>"{tmp_path}/args"; {RUN}')
    answers, shared = slurm_checks.cluster()
    assert (answers.outcome, answers.found) == ("ok", "22.05.8 answers, with 3 partitions: batch, gpu, old")
    assert shared.outcome == "ok"
    assert shared.found.startswith("batch (")
    assert shared.found.endswith(f"can use {tmp_path}/data and {sys.executable}")
    assert list((tmp_path / "data").iterdir()) == []
    steps = (tmp_path / "args").read_text().splitlines()
    assert sorted(line.split()[0] for line in steps if line.startswith("--partition")) == [
        "--partition=batch",
        "--partition=gpu",
    ]
    assert all("--account=vision" in line for line in steps if line.startswith("--partition"))


def test_a_data_directory_that_nodes_do_not_have_is_a_problem(programs, tmp_path):
    text = "node1 does not have /home/me of this machine"
    programs.add("srun", f"echo '{text}' >&2; echo 'srun: error: node1: task 0: Exited with exit code 1' >&2; exit 1")
    _, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert shared.found == f"jobs of {tmp_path}/data cannot run: srun: {text} (partition batch, gpu)"
    assert "SCRIPTMODE_DATA_DIR" in shared.advice


def test_files_of_nodes_that_do_not_reach_this_machine_are_a_problem(programs, tmp_path):
    programs.add("srun", "exit 0")
    _, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert f"this machine does not see what a node wrote to {tmp_path}/data" in shared.found


def test_a_data_directory_that_cannot_be_written_is_a_problem(programs, tmp_path):
    programs.add("srun", RUN)
    (tmp_path / "data").rmdir()
    (tmp_path / "data").write_text("")
    *_, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert f"{tmp_path}/data cannot be used: it is not a directory" in shared.found
    assert shared.advice.startswith("make it writable")


def test_a_busy_partition_is_a_warning(programs):
    programs.add("srun", "echo 'srun: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1")
    _, shared = slurm_checks.cluster()
    assert (shared.outcome, shared.prevents) == ("warning", False)
    assert "no node of batch, gpu was free within 15 s" in shared.found
