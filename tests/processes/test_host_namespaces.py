"""A host that is a process has an ``/opt/ml`` and a name of its own; the machine's ``/opt/ml`` stays as it is."""

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes import fresh, plain_user
from fakes.local_jobs import channel
from fakes.processes import until

from scriptmode import MPI, Estimator
from scriptmode_local._hosts import host_identity
from scriptmode_local._hosts.process_host import ProcessHost
from scriptmode_runtime._processes import namespace

OPT_ML = Path("/opt/ml")
#: A program written for SageMaker's containers, which reads no variable.
PROGRAM = """
    import json, os, socket
    host = json.load(open("/opt/ml/input/config/resourceconfig.json"))["current_host"]
    for folder, _, names in sorted(os.walk("/opt/ml/input/data")):
        for name in sorted(names):
            print(name, open(os.path.join(folder, name)).read().strip())
    os.makedirs("/opt/ml/model/export", exist_ok=True)
    os.chmod("/opt/ml/model/export", 0o700)
    open(f"/opt/ml/model/export/{host}", "w").write(host)
    os.symlink(f"/opt/ml/model/export/{host}", f"/opt/ml/model/latest-{host}")
    print("user", os.getuid(), "written by", host)
"""
CAPABILITIES = """
    print(*[line for line in open("/proc/self/status") if line.startswith("CapEff")])
"""
#: A plain user of a machine whose sysctl user.max_user_namespaces is 0; of this one where a new namespace can be made.
WITHOUT_USER_NAMESPACES = (
    "unshare", "--user", f"--map-user={plain_user.UID}", f"--map-group={plain_user.UID}", "--keep-caps", "sh", "-euc",
    'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"', "sh",
)  # fmt: skip
#: Fails where the process is another user than the one that made its directories.
OWN_FILE = """
import os
print('user', os.getuid(), 'owner', os.stat(os.environ['SM_MODEL_DIR']).st_uid)
path = os.environ['SM_MODEL_DIR'] + '/x'
open(path, 'w')
os.chown(path, os.getuid(), os.getgid())
"""
#: Runs a job in the directory of its argument, and prints its log, its status and the names in its model.
RUNS = """
    import sys
    from fakes.local_jobs import LocalJobs
    jobs = LocalJobs(sys.argv[1])
    description = jobs.run({script!r})
    print(*jobs.lines(description["TrainingJobName"]), sep=chr(10))
    print(description["TrainingJobStatus"], list(jobs.model(description)))
    jobs.close()
"""
WITHOUT_NAMESPACES = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--")


@pytest.fixture(autouse=True)
def machine():
    """The machine's ``/opt/ml`` is the same after each test."""
    before = sorted(OPT_ML.rglob("*"))
    yield
    assert sorted(OPT_ML.rglob("*")) == before


def run_by(user_argv, program, home):
    """Run a Python program that starts jobs, as another user or without a capability."""
    argv = (*user_argv, sys.executable, "-c", textwrap.dedent(program), str(home))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def own_opt(entry="true"):
    """Start what follows where /opt is its own: whoever removes the machine's /opt/ml takes it from running jobs."""
    return ("unshare", "--mount", "sh", "-euc", f'mount -t tmpfs none /opt; {entry}; exec "$@"', "sh")


#: What a program does to /opt/ml that is its own in a container.
CHANGES = """
    import os, shutil, stat
    os.chmod("/opt/ml/model", 0o1777)
    os.makedirs("/opt/ml/model/export/1")
    open("/opt/ml/model/export/1/weights", "w").write("weights")
    os.chmod("/opt/ml/model/export/1/weights", 0o400)
    os.link("/opt/ml/model/export/1/weights", "/opt/ml/model/hard")
    os.symlink("1/weights", "/opt/ml/model/export/latest")
    os.symlink("/opt/ml/model/export/1/weights", "/opt/ml/output/data/weights")
    os.link("/opt/ml/model/hard", "/opt/ml/checkpoints/same")
    shutil.move("/opt/ml/checkpoints/same", "/opt/ml/model/moved")
    shutil.copytree("/opt/ml/code", "/opt/ml/model/code", ignore=shutil.ignore_patterns("__pycache__"))
    print("mode", oct(stat.S_IMODE(os.stat("/opt/ml/model").st_mode)))
    os.chmod("/opt/ml/model/export/1", 0o000)
    os.chmod("/opt/ml/model/export/1", 0o500)
    os.chmod("/opt/ml", 0o755)
    os.rename("/opt/ml/model/export", "/opt/ml/model/exported")
"""


def test_a_script_may_chmod_link_and_move_in_opt_ml(jobs):
    description = jobs.run(CHANGES)
    name = description["TrainingJobName"]
    assert description["TrainingJobStatus"] == "Completed", jobs.lines(name)
    assert "algo-1: mode 0o1777" in jobs.lines(name)
    files = jobs.model(description)
    assert files["code/train.py"]
    assert {files[each] for each in ("exported/1/weights", "exported/latest", "hard", "moved")} == {b"weights"}


def test_a_machine_whose_hosts_file_cannot_be_replaced_has_opt_ml_alone(tmp_path):
    """As where /etc/hosts is missing: the file to mount is."""
    (tmp_path / "base" / "of the host").mkdir(parents=True)
    assert fresh.call(list_opt_ml, tmp_path) is None
    warning, listed = sorted((tmp_path / "log").read_text().splitlines(), key=lambda line: line == "of the host")
    assert listed == "of the host"
    assert "/etc/hosts cannot be replaced by the host's: No such file or directory (ENOENT at mounting " in warning
    assert "/etc/hosts); make /etc/hosts a file" in warning


def list_opt_ml(folder):
    """Run a host without /etc/hosts, and return what refused its namespace."""
    argv = ("/bin/ls", "/opt/ml")
    host = ProcessHost(argv, {}, folder / "log", folder / "base", folder / "missing")
    until(lambda: host.poll() is not None)
    return host.refusal


def test_what_was_in_opt_is_there_and_nothing_can_be_added(jobs):
    script = """
        import os
        print("found", sorted(os.listdir("/opt")))
        try:
            os.mkdir("/opt/new")
            os.rmdir("/opt/new")
        except OSError as error:
            print("refused", error.strerror)
    """
    lines = jobs.lines(jobs.run(script)["TrainingJobName"])
    assert f"algo-1: found {sorted({*(path.name for path in OPT_ML.parent.iterdir()), 'ml'})}" in lines
    if not OPT_ML.exists():
        assert "algo-1: refused Read-only file system" in lines


def test_a_plain_user_keeps_the_user_id_and_gets_no_capability():
    program = """
        import sys
        from fakes.local_jobs import LocalJobs
        from processes.test_host_namespaces import CAPABILITIES, PROGRAM, channel
        from pathlib import Path
        home = Path(sys.argv[1])
        jobs = LocalJobs(home)
        description = jobs.run(PROGRAM + CAPABILITIES, channels=[channel("train", (home / "in").as_uri(), InputMode="FastFile")])
        print(*jobs.lines(description["TrainingJobName"]), sep=chr(10))
        print("model", sorted(jobs.model(description)))
        jobs.close()
    """
    with plain_user.folder_of_the_user() as home:
        (home / "in").mkdir()
        (home / "in" / "part").write_text("one\n")
        printed = plain_user.run(textwrap.dedent(program), str(home), home=home)
    assert f"algo-1: user {plain_user.UID} written by algo-1" in printed
    assert "algo-1: part one" in printed
    assert "CapEff:\t0000000000000000" in printed
    assert "'export/algo-1'" in printed
    assert "own /opt/ml: no" not in printed


@pytest.mark.root
@pytest.mark.parametrize("folder", ["model", "checkpoints"])
def test_a_job_whose_files_went_to_the_machine_fails_where_namespaces_are_refused(tmp_path, folder):
    program = f"""
        import sys
        from fakes.local_jobs import LocalJobs
        jobs = LocalJobs(sys.argv[1])
        script = "import os; os.makedirs('/opt/ml/{folder}', exist_ok=True); open('/opt/ml/{folder}/misplaced', 'w')"
        description = jobs.run(script)
        print(*jobs.lines(description["TrainingJobName"]), sep=chr(10))
        print(description["FailureReason"])
        print(jobs.run("open(__import__('os').environ['SM_MODEL_DIR'] + '/x', 'w')")["TrainingJobStatus"])
        jobs.close()
    """
    printed = run_by((*own_opt(), *WITHOUT_NAMESPACES), program, tmp_path)
    refusal = "own /opt/ml: no, EPERM at unshare: /opt/ml is the directory of this machine, not of the host"
    assert f"warning: {refusal}; start the container with: docker" in printed
    assert f"ClientError: the model directory is empty, and '/opt/ml/{folder}/misplaced' of this machine" in printed
    assert printed.splitlines()[-1] == "Completed"


def test_a_plain_user_without_user_namespaces_is_told_and_trains_by_sm_model_dir(tmp_path):
    lines = run_by(WITHOUT_USER_NAMESPACES, RUNS.format(script=OWN_FILE), tmp_path).splitlines()
    (warning,) = [line for line in lines if "warning" in line]
    refusal = "own /opt/ml: no, ENOSPC at unshare: /opt/ml is the directory of this machine, not of the host"
    assert f"warning: {refusal}; allow user namespaces on this machine" in warning
    assert f"algo-1: user {plain_user.UID} owner {plain_user.UID}" in lines
    assert lines[-1] == "Completed ['x']"


def test_the_next_step_is_that_of_the_error(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: plain_user.UID)
    for step, number, advice in (
        ("writing setgroups", errno.EROFS, "make /proc writable in this container, or "),
        ("writing uid_map", errno.EPERM, "allow user namespaces on this machine (on Ubuntu as root: sysctl "),
    ):
        problem = host_identity.describe_refusal(namespace.Refusal(step, number, "no"))
        assert problem.text.startswith(f"own /opt/ml: no, {errno.errorcode[number]} at {step}: ")
        assert problem.advice.startswith(advice)


@pytest.mark.root
@pytest.mark.parametrize(
    ("argv", "said"), [(WITHOUT_NAMESPACES, "own /opt/ml: no, EPERM at unshare: "), ((), "")], ids=["root", "allowed"]
)
def test_plan_and_doctor_report_the_error_and_its_step(tmp_path, argv, said):
    program = """
        import os, sys
        from pathlib import Path
        from scriptmode import Estimator, PlatformError
        from scriptmode.doctor import _machine_checks as machine_checks
        script = Path(sys.argv[1], "train.py")
        script.touch()
        os.environ["SCRIPTMODE_DATA_DIR"] = sys.argv[1] + "/data"
        print(Estimator(entry_point=str(script), instance_type="local_process").plan())
        try:
            print(machine_checks.namespaces())
        except PlatformError as error:
            print("warning", error.message)
    """
    lines = run_by(argv, program, tmp_path).splitlines()
    assert lines[-1].startswith(f"warning {said}" if said else "own /opt/ml: yes")
    assert any(said in line for line in lines[:-1]) if said else "own /opt/ml" not in "".join(lines[:-1])


@pytest.mark.root
@pytest.mark.parametrize("entry", ["ln -s /nowhere /opt/ml", "touch /opt/ml", "mkdir /opt/else; ln -s else /opt/ml"])
def test_a_file_or_a_link_in_place_of_opt_ml_is_hidden_from_the_host(tmp_path, entry):
    printed = run_by(own_opt(entry), RUNS.format(script="open('/opt/ml/model/x', 'w')"), tmp_path)
    assert "warning" not in printed
    assert printed.splitlines()[-1] == "Completed ['x']"


def test_an_entry_point_of_the_request_runs_instead_of_train(jobs, tmp_path):
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "train.sh").write_text(
        "set -e\npython -c 'import scriptmode_runtime; print(\"the job has python\")'\n"
        'echo "arguments $*"; cp /opt/ml/input/config/hyperparameters.json /opt/ml/model/\n'
    )
    entry_point = ["/bin/bash", "/opt/ml/input/data/drivers/train.sh"]
    program = {"TrainingInputMode": "File", "ContainerEntrypoint": entry_point, "ContainerArguments": ["a b", "c"]}
    channels = [channel("drivers", (tmp_path / "drivers").as_uri())]
    name = jobs.start("pass", channels=channels, more={"AlgorithmSpecification": program})
    description, lines = jobs.completed(name), jobs.lines(name)
    assert "algo-1: the job has python" in lines
    assert "algo-1: arguments a b c" in lines
    assert list(jobs.model(description)) == ["hyperparameters.json"]


def test_an_entry_point_that_does_not_exist_is_named(jobs):
    program = {"TrainingInputMode": "File", "ContainerEntrypoint": ["/opt/ml/code/missing.sh"]}
    reason = jobs.run("pass", more={"AlgorithmSpecification": program})["FailureReason"]
    assert reason.startswith("ClientError: the hosts cannot be started with '/opt/ml/code/missing.sh'")


@pytest.mark.mpi
def test_each_rank_has_the_opt_ml_of_its_host(tmp_path):
    (tmp_path / "ranks.py").write_text(textwrap.dedent(PROGRAM))
    estimator = Estimator(
        entry_point=str(tmp_path / "ranks.py"), instance_type="local_process", instance_count=2,
        distribution=MPI(processes_per_host=1),
    )  # fmt: skip
    job = estimator.fit(logs=False)
    said = "\n".join(event.message for event in job.logs())
    assert "written by algo-1" in said
    assert "written by algo-2" in said
