"""A host that is a process has an ``/opt/ml`` and a name of its own; the machine's ``/opt/ml`` stays as it is."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes import plain_user
from fakes.local_jobs import channel
from fakes.processes import recorded, until

from scriptmode import MPI, Estimator
from scriptmode.platforms.local.hosts.process_host import ProcessHost
from scriptmode_runtime.processes import process_tree

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
#: A filter of system calls, as Docker's default one: unshare(2) is not permitted, on x86-64 and ARM.
WITH_SECCOMP = """
import ctypes, platform, struct

def load(code, value, *jumps):
    return struct.pack("=HBBI", code, *(jumps or (0, 0)), value)

number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
code = load(0x20, 0) + load(0x15, number, 0, 1) + load(0x06, 0x50000 | 1) + load(0x06, 0x7FFF0000)
program = ctypes.create_string_buffer(code, len(code))
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0
filter = struct.pack("HP", 4, ctypes.addressof(program))
assert library.prctl(22, 2, ctypes.create_string_buffer(filter, len(filter)), 0, 0) == 0
"""
WITHOUT_NAMESPACES = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--")


@pytest.fixture(autouse=True)
def machine():
    """The machine's ``/opt/ml`` is the same after each test."""
    before = sorted(OPT_ML.rglob("*"))
    yield
    assert sorted(OPT_ML.rglob("*")) == before


@pytest.fixture
def data(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part").write_text("one\n")
    return (tmp_path / "in").as_uri()


def run_by(user_argv, program, home):
    """Run a Python program that starts jobs, as another user or without a capability."""
    argv = (*user_argv, sys.executable, "-c", textwrap.dedent(program), str(home))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_program_with_opt_ml_in_its_text_finds_its_data_and_leaves_its_model(jobs, data, mode):
    description = jobs.run(PROGRAM, hosts=2, channels=[channel("train", data, InputMode=mode)])
    lines = jobs.lines(description["TrainingJobName"])
    for host in ("algo-1", "algo-2"):
        assert f"{host}: part one" in lines
        assert f"{host}: user {os.getuid()} written by {host}" in lines
    model = jobs.model(description)
    for name in ("export/algo-1", "latest-algo-1"):
        assert model[name] == b"algo-1"
    assert model["export/algo-2"] == b"algo-2"
    assert not [line for line in lines if "warning" in line]


def test_a_pipe_is_read_at_its_path_below_opt_ml(jobs, data):
    script = "print('read', open('/opt/ml/input/data/train_0').read())"
    description = jobs.run(script, channels=[channel("train", data, InputMode="Pipe")])
    assert "algo-1: read one" in jobs.lines(description["TrainingJobName"])


def test_two_jobs_at_once_share_neither_opt_ml_nor_addresses(jobs, tmp_path):
    script = """
        import os, socket, time
        name = os.environ["TRAINING_JOB_NAME"]
        open("/opt/ml/model/name", "w").write(name)
        open("/opt/ml/model/read", "w").write(open("/opt/ml/input/data/train/own").read())
        server = socket.create_server((os.environ["SM_CURRENT_HOST"], 7077))
        print("bound", flush=True)
        while not os.path.exists("/opt/ml/checkpoints/go"):
            time.sleep(0.01)
    """
    names = []
    for own in ("one", "two"):
        (tmp_path / own).mkdir()
        (tmp_path / own / "own").write_text(own)
        files = channel("train", (tmp_path / own).as_uri(), InputMode="FastFile")
        names.append(jobs.start(script, hosts=2, channels=[files]))
    for name in names:
        until(lambda name=name: sum("bound" in line for line in jobs.lines(name)) == 2)
    for name in names:
        for host in ("algo-1", "algo-2"):
            (jobs.job_folder(name).host(host) / "checkpoints" / "go").touch()
    for name, own in zip(names, (b"one", b"two")):
        assert jobs.model(jobs.wait(name)) == {"name": name.encode(), "read": own}


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


def test_hosts_find_each_other_by_name(jobs):
    script = """
        import os, socket, time
        if os.environ["SM_CURRENT_HOST"] == "algo-2":
            with socket.create_server(("algo-2", 5000)) as server:
                server.accept()[0].sendall(b"hello")
        else:
            while True:
                try:
                    print("heard", socket.create_connection(("algo-2", 5000), 10).recv(5).decode())
                    break
                except ConnectionRefusedError:
                    time.sleep(0.02)
        print("as before", socket.gethostbyname("localhost"))
    """
    lines = jobs.lines(jobs.run(script, hosts=2)["TrainingJobName"])
    assert "algo-1: heard hello" in lines
    assert "algo-1: as before 127.0.0.1" in lines


def test_a_machine_whose_hosts_file_cannot_be_replaced_has_opt_ml_alone(tmp_path):
    """As where /etc/hosts is missing: the file to mount is."""
    log = tmp_path / "log"
    argv = ("/bin/ls", "/opt/ml")
    (tmp_path / "base" / "of the host").mkdir(parents=True)
    host = ProcessHost("algo-1", argv, {}, tmp_path, log, tmp_path / "base", tmp_path / "missing")
    host.start()
    until(lambda: host.poll() is not None)
    warning, listed = sorted(log.read_text().splitlines(), key=lambda line: line == "of the host")
    assert listed == "of the host"
    assert "/etc/hosts cannot be replaced by the host's: No such file or directory; make /etc/hosts a file" in warning
    assert host.refusal is None


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


#: The name is not free, as if an entry could not be mounted.
INTERRUPTED = """
    import os, sys
    from scriptmode_runtime.processes import namespace
    os.makedirs(sys.argv[1] + "/base")
    os.makedirs(sys.argv[1] + "/parent/other")
    namespace.enter(sys.argv[1] + "/base")
    try:
        namespace._add_directory(sys.argv[1] + "/parent", "other")
    except FileExistsError:
        os.mkdir(sys.argv[1] + "/parent/new")
        print(sorted(os.listdir(sys.argv[1] + "/parent")))
"""


def test_a_directory_of_the_machine_is_whole_where_its_copy_fails(tmp_path):
    assert run_by((), INTERRUPTED, tmp_path) == "['new', 'other']\n"
    assert sorted(each.name for each in (tmp_path / "parent").iterdir()) == ["new", "other"]


@pytest.mark.parametrize("mode", ["File", "FastFile", "Pipe"])
def test_no_mount_is_left_when_a_host_is_killed(jobs, data, mode):
    script = """
        import os, time
        path = "/opt/ml/input/data/train"
        with open(path + ("_0" if os.path.exists(path + "_0") else "/part")) as file:
            print("up", file.read(1), flush=True)
            time.sleep(60)
    """
    name = jobs.start(script, channels=[channel("train", data, InputMode=mode)])
    jobs.until_line(name, "up")
    host = recorded(jobs.job_folder(name))["algo-1"]
    os.kill(host.pid, 9)
    assert jobs.wait(name)["TrainingJobStatus"] == "Failed"
    until(lambda: not process_tree.is_running(host))
    assert str(jobs.data_dir) not in Path("/proc/self/mountinfo").read_text()


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
    assert "mount namespace was refused" not in printed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the capability that is dropped")
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
    existed = OPT_ML.exists()
    try:
        printed = run_by(WITHOUT_NAMESPACES, program, tmp_path)
    finally:
        (OPT_ML / folder / "misplaced").unlink(missing_ok=True)
        if not existed:
            (OPT_ML / folder).rmdir()
            OPT_ML.rmdir()
    assert "warning: /opt/ml is the directory of this machine, not of the host" in printed
    assert "docker run --cap-add SYS_ADMIN" in printed
    assert f"ClientError: the model directory is empty, and '/opt/ml/{folder}/misplaced' of this machine" in printed
    assert printed.splitlines()[-1] == "Completed"


@pytest.mark.parametrize(
    ("argv", "before", "refusal"),
    [
        (WITHOUT_USER_NAMESPACES, "", "No space left on device; run as root: sysctl user.max_user_namespaces="),
        (WITHOUT_USER_NAMESPACES[:4], WITH_SECCOMP, "Operation not permitted; "),
    ],
    ids=["sysctl", "seccomp"],
)
def test_a_plain_user_without_user_namespaces_is_told_and_trains_by_sm_model_dir(tmp_path, argv, before, refusal):
    program = f"""
import sys
{before}
from fakes.local_jobs import LocalJobs
jobs = LocalJobs(sys.argv[1])
script = "import os; print('user', os.getuid()); open(os.environ['SM_MODEL_DIR'] + '/x', 'w')"
description = jobs.run(script)
print(*jobs.lines(description["TrainingJobName"]), sep=chr(10))
print(description["TrainingJobStatus"], list(jobs.model(description)))
jobs.close()
"""
    lines = run_by(argv, program, tmp_path).splitlines()
    (warning,) = [line for line in lines if "warning" in line]
    assert f"a mount namespace was refused: {refusal}" in warning
    assert f"algo-1: user {plain_user.UID}" in lines
    assert lines[-1] == "Completed ['x']"


def test_an_entry_point_of_the_request_runs_instead_of_train(jobs, tmp_path):
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "train.sh").write_text(
        "set -e\npython -c 'import scriptmode_runtime; print(\"the job has python\")'\n"
        'echo "arguments $*"; cp /opt/ml/input/config/hyperparameters.json /opt/ml/model/\n'
    )
    request = jobs.request("pass", channels=[channel("drivers", (tmp_path / "drivers").as_uri())])
    request["AlgorithmSpecification"].update(
        ContainerEntrypoint=["/bin/bash", "/opt/ml/input/data/drivers/train.sh"], ContainerArguments=["a b", "c"]
    )
    jobs.platform.create(request)
    description = jobs.wait(request["TrainingJobName"])
    lines = jobs.lines(request["TrainingJobName"])
    assert description["TrainingJobStatus"] == "Completed", lines
    assert "algo-1: the job has python" in lines
    assert "algo-1: arguments a b c" in lines
    assert list(jobs.model(description)) == ["hyperparameters.json"]


def test_an_entry_point_that_does_not_exist_is_named(jobs):
    request = jobs.request("pass")
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/opt/ml/code/missing.sh"]
    jobs.platform.create(request)
    reason = jobs.wait(request["TrainingJobName"])["FailureReason"]
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
