"""What is left of a job whose disk is full: the reason why, and nothing else."""

import os
import subprocess
import sys

import pytest
from fakes.archives import packed
from fakes.host_folders import write_host
from processes.launchers import ENTRYPOINTS, host
from processes.small_disk import train_on_small_disk

from scriptmode_runtime.contract import FAILURE_RECORD_LIMIT

#: Takes the last byte of the disk.
FILL = """
import os
def fill():
    for size in (65536, 4096, 1):
        with open(os.path.join(os.environ["SM_MODEL_DIR"], f"of {size}"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                print(error)
"""


def filling_host(tmp_path, script):
    return host(tmp_path, FILL + script)


def test_the_failure_file_is_whole_though_the_disk_is_full(tmp_path):
    script = "fill()\nwith open(os.path.join(os.environ['SM_MODEL_DIR'], 'weights'), 'wb') as file: file.write(b'w')"
    ran = train_on_small_disk(filling_host(tmp_path, script))
    assert ran.code == 1
    assert ran.free < FAILURE_RECORD_LIMIT
    assert ran.names == ["data", "failure", "failure.json", "intermediate"]
    first, hint, *lines = ran.failure.splitlines()
    assert first == "algo-1, script: exit code 1"
    assert hint == "A disk is full, or has no room for another file: use a larger volume, or fewer files"
    assert lines[-1] == "OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize("words", ["'my own words'", "''"], ids=["words", "nothing"])
def test_an_empty_failure_file_of_the_script_does_not_hide_the_reason(tmp_path, words):
    script = f"fill()\nwith open(os.path.join(os.environ['SM_OUTPUT_DIR'], 'failure'), 'w') as file: file.write({words})\nraise ValueError('no')"
    ran = train_on_small_disk(filling_host(tmp_path, script))
    assert ran.names == ["data", "failure", "failure.json", "intermediate"]
    assert ran.failure.startswith("algo-1, script: exit code 1\n")


def test_a_failure_file_that_the_script_wrote_is_kept(tmp_path):
    script = (
        "open(os.path.join(os.environ['SM_OUTPUT_DIR'], 'failure'), 'w').write('my own words')\nfill()\nos._exit(4)"
    )
    ran = train_on_small_disk(filling_host(tmp_path, script))
    assert (ran.code, ran.names, ran.failure) == (
        4,
        ["data", "failure", "failure.json", "intermediate"],
        "my own words",
    )
    assert (ran.record["exit_code"], ran.record["traceback"]) == (4, "my own words")


def test_a_good_end_on_a_full_disk_leaves_no_failure_file(tmp_path):
    ran = train_on_small_disk(filling_host(tmp_path, "fill()"))
    assert (ran.code, ran.names) == (0, ["data", "intermediate"])
    assert 0 < ran.free <= 4096 + FAILURE_RECORD_LIMIT, "the room that was kept is given back"


def test_a_disk_that_was_full_for_a_while_gets_the_failure(tmp_path):
    base = filling_host(tmp_path, "open(os.environ['ENDS'], 'w').close()\nraise SystemExit(3)")
    ran = train_on_small_disk(base, filled="meanwhile", ENDS=str(base.with_name("shown") / "ends"))
    assert (ran.code, ran.failure) == (3, "algo-1, script: exit code 3")
    assert ran.record["exit_code"] == 3


@pytest.mark.parametrize("code", [0, 3])
def test_a_disk_that_is_full_from_the_start_gets_no_empty_failure_file(tmp_path, code):
    ran = train_on_small_disk(filling_host(tmp_path, f"raise SystemExit({code})"), filled=True)
    assert (ran.code, ran.free) == (code, 0), ran.output
    assert ran.names == ["data", "intermediate"]
    if code:
        assert ran.output.endswith("scriptmode: script ended with exit code 3\n")


@pytest.mark.parametrize("closed", [">/dev/full 2>&1", "2>&-"])
def test_a_log_that_cannot_be_written_does_not_change_the_exit_code(tmp_path, closed):
    base = filling_host(tmp_path, "print('through')\nraise SystemExit(3)")
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = ["sh", "-c", f'"$0" -m scriptmode_runtime {closed}', sys.executable]
    assert subprocess.run(command, env=env, check=False, timeout=600).returncode == 3
    assert (base / "output" / "failure").read_text() == "algo-1, script: exit code 3\nits log ends with\nthrough"


def test_a_bomb_is_refused_before_the_disk_is_full_and_nothing_of_it_is_left(tmp_path):
    source = tmp_path / "sourcedir.tar.gz"
    source.write_bytes(packed({f"train{number}.py": bytes(10**6) for number in range(50)}))
    assert source.stat().st_size < 10**6
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=str(source))
    ran = train_on_small_disk(base, "20m")
    assert ran.code == 1
    assert f"the source {source} unpacks to at least " in ran.failure
    assert ran.failure.endswith("free space there, or use a larger volume")
    assert ran.free > 19.5 * 2**20
