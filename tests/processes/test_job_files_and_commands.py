"""``scriptmode cp`` and ``scriptmode exec``: files of jobs, and commands in the environment of their hosts."""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.command_line import program
from fakes.local_jobs import request_for
from fakes.processes import until

from scriptmode import TrainingJob
from scriptmode.core.request.parse import parse_request
from scriptmode.platforms.local.hosts import host_command
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.store.state import starting_state
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

TRAIN = """
import os, sys, time
folder = os.environ["SM_MODEL_DIR"]
os.makedirs(f"{folder}/sub/deeper")
open(f"{folder}/weights", "w").write(os.environ["SM_CURRENT_HOST"])
open(f"{folder}/sub/deeper/part", "w").write("part")
open(os.environ["SM_OUTPUT_DATA_DIR"] + "/report", "w").write("report")
os.chmod(f"{folder}/sub/deeper/part", 0o555)
os.symlink("../weights", f"{folder}/sub/inside")
os.symlink("sub", f"{folder}/latest")
if sys.argv[-1] == "wait":
    os.symlink("/etc/passwd", f"{folder}/sub/outside")
    os.symlink("/etc", f"{folder}/etc")
    os.symlink("/opt/ml/model/weights", f"{folder}/sub/by-name")
    os.symlink(f"{folder}/weights", f"{folder}/sub/by-variable")
    os.mkfifo(f"{folder}/fifo")
print("up", flush=True)
time.sleep(600 if sys.argv[-1] == "wait" else 0)
"""


@pytest.fixture(scope="module")
def folder(user_folder):
    (user_folder / "train.py").write_text(TRAIN)
    assert program("run", "train.py", "--job-name", "done").returncode == 0
    words = ("--job-name", "live", "--instance-count", "2", "--no-wait", "--", "--then", "wait")
    assert program("run", "train.py", *words).returncode == 0
    job = TrainingJob.attach("live")
    until(lambda: sum(event.message == "up" for event in job.logs()) == 2)
    yield user_folder
    program("rm", "--force", "live")


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copied(*words):
    done = program("cp", "--json", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {Path(each).as_posix(): Path(each).read_text() for each in found["files"]}, found["skipped"]


def test_files_of_a_completed_job_are_those_of_its_artifacts(here):
    files, skipped = copied("done:model", "m")
    assert files == {"m/weights": "algo-1", "m/sub/deeper/part": "part", "m/sub/inside": "algo-1"}
    assert skipped == []
    assert copied("done:model/weights")[0] == {"weights": "algo-1"}
    assert copied("done:output/report", "renamed")[0] == {"renamed": "report"}
    assert copied("done:code", ".")[0] == {"code/train.py": TRAIN}
    (log,) = copied("done:log")[0].items()
    assert log[0] == "log/algo-1.log"
    assert "up\n" in log[1]
    assert list(copied("--last", ":log", "l")[0]) == ["l/algo-1.log", "l/algo-2.log"]


def test_files_of_a_running_host_are_copied_and_no_others(here):
    files, skipped = copied("live:model", "--host", "algo-2")
    links = {f"model/sub/{name}": "algo-2" for name in ("inside", "by-name", "by-variable")}
    assert files == {"model/weights": "algo-2", "model/sub/deeper/part": "part", **links}
    assert sorted(skipped) == ["etc", "fifo", "latest", "sub/outside"]
    links = {f"latest/{name}": "algo-1" for name in ("inside", "by-name", "by-variable")}
    assert copied("live:model/latest")[0] == {"latest/deeper/part": "part", **links}
    assert copied("live:model/latest/deeper")[0] == {"deeper/part": "part"}
    assert (here / "model/sub/deeper/part").stat().st_mode & 0o700 == 0o700
    assert copied("live:model/weights")[0] == {"weights": "algo-1"}
    assert (here / "weights").stat().st_mode & 0o111 == 0
    assert copied("live:code/train.py", "x")[0] == {"x": TRAIN}
    assert program("cp", "live:output", "o").stdout == "copied 1 file to o\n"


WRONG = {
    "no area": ("live:", "the path is missing; use one of model, output, checkpoints, code, log"),
    "an area misspelled": ("live:modle", "training job live has no 'modle'; did you mean 'model'?"),
    "another file": ("done:model/sub/zzz", "has no 'model/sub/zzz'; use one of deeper/, inside"),
    "a link that leads out": ("live:model/sub/outside", "'model/sub/outside' leads out of the directory of training job live"),
    "below a link that leads out": ("live:model/etc/passwd", "'model/etc/passwd' leads out of the directory"),
    "the directory above": ("live:model/../../../job.json", "leads out of the directory of training job live"),
    "no path": ("live", "'live' has no path; write live:PATH, where PATH is one of model, output, checkpoints"),
    "a FIFO": ("live:model/fifo", "'fifo' cannot be copied: it is not a regular file; copy a file that this user can read"),
    "an empty directory": ("live:checkpoints", "training job live is InProgress, and its 'checkpoints' has no files here; wait for it"),
    "no checkpoints": ("done:checkpoints", "training job done is Completed and has no checkpoints"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_path_is_an_error_that_names_the_right_ones(here, source, message):
    done = program("cp", source, "copy", "--platform", "local")
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert not (here / "copy").exists()


def test_a_copy_that_breaks_off_leaves_what_was_there(here, folder):
    (folder / "data dir/jobs/live/hosts/algo-1/checkpoints/large").write_bytes(b"x" * 8192)
    (here / "large").write_text("before")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for target in ("large", "new"):
        done = program("cp", "live:checkpoints/large", target, preexec_fn=limit)
        assert (done.returncode, "File too large; name another target" in done.stderr) == (1, True), done.stderr
    assert {path.name: path.read_text() for path in here.iterdir()} == {"large": "before"}


def test_a_link_at_the_target_is_written_to(here):
    (here / "file").touch()
    (here / "link").symlink_to("file")
    assert program("cp", "live:model/weights", "link").returncode == 0
    assert (here / "link").is_symlink()
    assert (here / "file").read_text() == "algo-1"


def test_a_target_that_cannot_be_written_is_an_error(here):
    (here / "file").touch()
    for target in ("missing/x", "file"):
        done = program("cp", "live:model", target)
        assert done.returncode == 1
        assert f"cannot be copied to '{target}': " in done.stderr


def test_a_command_has_the_environment_of_the_script(here, folder):
    code = "import json, os, sys; print(json.dumps([dict(os.environ), os.getcwd(), sys.executable]))"
    done = program("exec", "live", "--host", "algo-2", "--", "python", "-c", code)
    variables, directory, interpreter = json.loads(done.stdout)
    host = folder / "data dir/jobs/live/hosts/algo-2"
    assert (variables["SM_CURRENT_HOST"], variables["SM_MODEL_DIR"]) == ("algo-2", str(host / "model"))
    assert json.loads(variables["SM_HPS"]) == {"then": "wait"}
    assert directory == str(host / "code")
    assert Path(interpreter).parent == Path(sys.executable).parent
    # The host's own, where this machine allows a namespace of mounts.
    shown = program("exec", "live", "--host", "algo-2", "--", "cat", "/opt/ml/model/weights")
    refused = "own /opt/ml: no" in program("logs", "live").stdout
    assert shown.stdout == ("" if refused else "algo-2")
    assert program("exec", "--last", "--", "sh", "-c", "echo $SM_CURRENT_HOST").stdout == "algo-1\n"
    assert program("exec", "live", "--", "cat", input="typed").stdout == "typed"


def test_a_module_in_the_current_directory_does_not_hide_one_of_python(here):
    (here / "ctypes.py").write_text("raise SystemExit('hidden')")
    assert program("exec", "live", "--", "echo", "ran").stdout == "ran\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["live"], 2, "COMMAND is missing; write it after --, as in scriptmode exec JOB -- ls -l"),
        (
            ["live", "--", "no-program"],
            127,
            "scriptmode: no-program: No such file or directory; name a program that the host",
        ),
        (["live", "--host", "algo-3", "--", "ls"], 2, "training job live has no host 'algo-3'; did you mean 'algo-"),
        (["live", "--", ""], 2, "COMMAND is missing"),
        (["live", "--", "", "ls"], 2, "COMMAND is missing"),
        # As of an unset variable of a shell: another job's host is not entered.
        (["", "--", "ls"], 1, "no training job named ''"),
        (["live", "--host", "", "--", "ls"], 2, "--host is ''; name a host"),
        (["done", "--", "ls"], 1, "training job done is Completed, and its hosts do not run; start it again"),
    ],
)
def test_a_command_that_cannot_run_is_an_error(here, words, code, message):
    done = program("exec", *words)
    assert done.returncode == code
    assert message in done.stderr


@pytest.mark.root
def test_a_process_of_another_user_is_never_entered(tmp_path, capfd):
    job = Job(parse_request(request_for("job-1")), "arn", "us-east-1", sys.executable, 1.0)
    state = starting_state("job-1", "arn", time.time()).with_status("Training", time.time())
    with JobStore(tmp_path).create(job, state) as (folder, _):
        variables = {BASE_DIR_VARIABLE: str(folder.host("algo-1")), "SM_CURRENT_HOST": "algo-1"}
    command = ("/bin/sh", "-c", "echo up; exec sleep 600")
    with subprocess.Popen(command, env=variables, user=65534, cwd="/", stdout=subprocess.PIPE) as stranger:
        try:
            assert stranger.stdout.readline() == b"up\n"
            code = host_command.run_beside_process(folder, job, "algo-1", ["echo", "entered"])
        finally:
            stranger.kill()
    output, errors = capfd.readouterr()
    assert (code, output) == (1, "")
    assert "the script of this host does not run" in errors
