"""What is left of a job whose disk is full: the reason why, and nothing else."""

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile

import pytest
from fakes.host_folders import write_host
from processes.launchers import ENTRYPOINTS
from processes.small_disk import train_on_small_disk

from scriptmode_runtime.contract import FAILURE_FILE_LIMIT, FAILURE_RECORD_LIMIT, TRACEBACK_LIMIT

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


def host(tmp_path, script, **hyperparameters):
    code = {"train.py": FILL + script}
    return write_host(tmp_path / "algo-1", code=code, sagemaker_program="train.py", **hyperparameters)


def test_the_failure_file_is_whole_though_the_disk_is_full(tmp_path):
    script = "fill()\nwith open(os.path.join(os.environ['SM_MODEL_DIR'], 'weights'), 'wb') as file: file.write(b'w')"
    ran = train_on_small_disk(host(tmp_path, script))
    assert ran.code == 1
    assert ran.free < FAILURE_RECORD_LIMIT
    assert ran.names == ["data", "failure", "failure.json", "intermediate"]
    first, hint, *lines = ran.failure.splitlines()
    assert first == "algo-1, script: exit code 1"
    assert hint == "The disk is full: use a larger volume, or fewer files"
    assert lines[-1] == "OSError: [Errno 28] No space left on device"


def test_the_longest_failure_file_fits(tmp_path):
    ran = train_on_small_disk(host(tmp_path, "fill()\nraise ValueError('😀' * 4000 + ' at the end')"))
    assert ran.names == ["data", "failure", "failure.json", "intermediate"]
    assert len(ran.failure) == FAILURE_FILE_LIMIT
    assert ran.failure.endswith("😀 at the end")
    assert len(ran.record["traceback"]) == TRACEBACK_LIMIT
    assert ran.record["traceback"].endswith("😀 at the end")


@pytest.mark.parametrize("words", ["'my own words'", "''"], ids=["words", "nothing"])
def test_an_empty_failure_file_of_the_script_does_not_hide_the_reason(tmp_path, words):
    script = f"fill()\nwith open(os.path.join(os.environ['SM_OUTPUT_DIR'], 'failure'), 'w') as file: file.write({words})\nraise ValueError('no')"
    ran = train_on_small_disk(host(tmp_path, script))
    assert ran.names == ["data", "failure", "failure.json", "intermediate"]
    assert ran.failure.startswith("algo-1, script: exit code 1\n")


def test_a_failure_file_that_the_script_wrote_is_kept(tmp_path):
    script = (
        "open(os.path.join(os.environ['SM_OUTPUT_DIR'], 'failure'), 'w').write('my own words')\nfill()\nos._exit(4)"
    )
    ran = train_on_small_disk(host(tmp_path, script))
    assert (ran.code, ran.names, ran.failure) == (
        4,
        ["data", "failure", "failure.json", "intermediate"],
        "my own words",
    )
    assert (ran.record["exit_code"], ran.record["traceback"]) == (4, "my own words")


def test_a_good_end_on_a_full_disk_leaves_no_failure_file(tmp_path):
    ran = train_on_small_disk(host(tmp_path, "fill()"))
    assert (ran.code, ran.names) == (0, ["data", "intermediate"])
    assert 0 < ran.free <= 4096 + FAILURE_RECORD_LIMIT, "the room that was kept is given back"


@pytest.mark.parametrize("code", [0, 3])
def test_a_disk_that_is_full_from_the_start_gets_no_empty_failure_file(tmp_path, code):

    ran = train_on_small_disk(host(tmp_path, f"raise SystemExit({code})"), filled=True)
    assert (ran.code, ran.free) == (code, 0), ran.output
    assert ran.names == ["data", "intermediate"]
    if code:
        assert ran.output.endswith("scriptmode: script ended with exit code 3\n")


@pytest.mark.parametrize("closed", ["2>/dev/full", ">/dev/full 2>&1", "2>&-"])
def test_a_log_that_cannot_be_written_does_not_change_the_exit_code(tmp_path, closed):
    base = host(tmp_path, "print('through')\nraise SystemExit(3)")
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = ["sh", "-c", f'"$0" -m scriptmode_runtime {closed}', sys.executable]
    assert subprocess.run(command, env=env, check=False, timeout=100).returncode == 3
    assert (base / "output" / "failure").read_text() == "algo-1, script: exit code 3\nits log ends with\nthrough"


NUMBERED = """
import array, fcntl, os, termios, time
def say(numbers):
    for number in numbers:
        os.write(1, b"line %d of a thousand, %s\\n" % (number, b"x" * 100))
    left = array.array("i", [1])
    while left[0]:
        time.sleep(0.01)
        fcntl.ioctl(1, termios.FIONREAD, left)
"""
NOTICE = re.compile(
    r"scriptmode: (\d+) lines? \(\d+ bytes\) of this log could not be written and are missing here: No space.*"
)


def counted(output):
    """Return the numbered lines of a log, and how many are said to be missing; no line may be another's part."""
    lines = [line for line in output.splitlines() if not re.match("scriptmode: script ", line)]
    notices = [NOTICE.fullmatch(line.rstrip()) for line in lines]
    shown = [line for line, notice in zip(lines, notices) if not notice]
    assert all(re.fullmatch(r"line \d+ of a thousand, x{100}", line) for line in shown), output
    return [int(line.split()[1]) for line in shown], sum(int(notice[1]) for notice in notices if notice)


def test_a_log_on_a_disk_with_new_space_has_the_number_of_missing_lines(tmp_path):
    files = [f"of {size}" for size in (65536, 4096, 1)]
    free = f"[os.unlink(os.path.join(os.environ['SM_MODEL_DIR'], name)) for name in {files}]"
    script = f"{NUMBERED}say(range(20))\nfill()\nsay(range(20, 950))\n{free}\nsay(range(950, 1000))"
    ran = train_on_small_disk(host(tmp_path, script.replace("print(error)", "pass")), log=True)
    assert ran.code == 0, ran.output
    shown, lost = counted(re.sub(r"(?m)^\[Errno 28.*\n", "", ran.output))
    assert shown == sorted(shown)
    assert lost > 0
    assert len(shown) + lost == 1000
    assert shown[:20] == list(range(20))
    assert shown[-10:] == list(range(990, 1000))


def test_a_log_on_a_disk_that_stays_full_ends_with_how_many_lines_are_missing(tmp_path):
    script = f"{NUMBERED}say(range(100))\nfill()\nsay(range(100, 1000))"
    ran = train_on_small_disk(host(tmp_path, script), log=True)
    assert ran.code == 0, ran.output
    last = ran.output.splitlines()[-1].rstrip()
    assert NOTICE.fullmatch(last), ran.output
    shown, lost = counted(re.sub(r"(?m)^\[Errno 28.*\n", "", ran.output))
    assert shown == list(range(len(shown)))
    # The launcher's own line of the script's end is missing, too, and those of the filled disk.
    assert 1000 < len(shown) + lost <= 1000 + 6


def bomb(path, megabytes, count):
    block = bytes(10**6)
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for number in range(count):
            info = tarfile.TarInfo(f"train{number}.py")
            info.size = megabytes * 10**6 // count
            tar.addfile(info, io.BytesIO(block * (info.size // 10**6)))
    return path


@pytest.mark.parametrize("count", [1, 50], ids=["one file", "many files"])
def test_a_bomb_is_refused_before_the_disk_is_full_and_nothing_of_it_is_left(tmp_path, count):
    source = bomb(tmp_path / "sourcedir.tar.gz", 50, count)
    assert source.stat().st_size < 10**6
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=str(source))
    ran = train_on_small_disk(base, "20m")
    assert ran.code == 1
    assert f"the source {source} unpacks to at least " in ran.failure
    assert ran.failure.endswith("free space there, or use a larger volume")
    assert ran.free > 19.5 * 2**20


def test_the_job_sets_the_limit_of_its_source(tmp_path):
    source = bomb(tmp_path / "sourcedir.tar.gz", 4, 4)
    base = write_host(tmp_path / "algo-1", sagemaker_program="train0.py", sagemaker_submit_directory=str(source))
    ran = train_on_small_disk(base, "20m", SCRIPTMODE_SOURCE_LIMIT_GB="0.003")
    assert "unpacks to more than 3.0 MB" in ran.failure
    assert ran.free > 19.5 * 2**20
