"""What the launcher leaves behind when it ends, or cannot begin."""

import os
import subprocess
import sys

import pytest
from fakes.host_folders import write_files, write_host
from processes.driver import LAUNCHER
from processes.launchers import ENTRYPOINTS

DRIVER = f"""{LAUNCHER}
import os, resource, signal, sys
from scriptmode_runtime.processes import children
from scriptmode_runtime.errors import UserCodeError

def spec(name, program, stop="group"):
    return ProcessSpec(name, (sys.executable, "-c", program), dict(), "/", stop)

def described(spec, status, output):
    return Failure("algo-1", spec.name, 1, spec.name + " " + str(status))

def is_open(descriptor):
    try:
        return bool(os.fstat(descriptor))
    except OSError:
        return False

def opened():
    return [descriptor for descriptor in range(256) if is_open(descriptor)]
"""


def drive(program, **kwargs):
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", DRIVER + program]
    return subprocess.run(command, env=env, capture_output=True, timeout=60, check=False, **kwargs)


def test_a_failure_signals_each_process_once():
    ran = drive("""
counts = "import signal, sys; signal.signal(15, lambda *_: print('told', flush=True)); print('deaf', flush=True)"
rank = counts + "\\nwhile True: signal.pause()"
ranked = "{**os.environ, 'OMPI_COMM_WORLD_RANK': '0'}"
mpirun = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {rank!r}], env={ranked})"
fails = "import sys, time; time.sleep(0.5); sys.exit(3)"
with launcher(described) as it:
    it.run(LaunchPlan(spec("mpirun", mpirun, "ranks"), (spec("service", fails),)))
""")
    assert ran.stdout == b"deaf\ntold\n", ran


def test_the_log_names_the_processes_that_a_script_left_running():
    ran = drive("""
leaves = "import subprocess; [subprocess.Popen(('sleep', '60'), stdout=-3, stderr=-3) for _ in range(2)]"
with launcher(described) as it:
    it.run(LaunchPlan(spec("script", leaves)))
print(children.has_children())
""")
    assert ran.stdout == b"False\n", ran
    assert ran.stderr.endswith(b"scriptmode: processes that were left running are killed: sleep (2)\n"), ran


def test_a_name_in_the_log_has_no_arguments_and_is_one_short_line():
    ran = drive("""
command = [sys.executable, "-c", "import time; time.sleep(60)", "--password=1"]
import subprocess
named = [(["sleep", "60"], "bad\\nname" + "x" * 90), (command, "python3"), ([*command[:1], "/dev/stdin"], "python3")]
started = [subprocess.Popen([name, *words[1:]], executable=sys.executable if words[0] != "sleep" else "sleep",
                            stdin=subprocess.PIPE) for words, name in named]
for each in started:
    while not open(f"/proc/{each.pid}/cmdline").read():  # it is set after the start is reported
        time.sleep(0.01)
print(children.describe_killed([each.pid for each in started]))
print(children.describe_killed([started[1].pid, 0]))
for each in started:
    each.kill()
print(repr(children.describe_killed([])))
""")
    lines = ran.stdout.decode().splitlines()
    assert lines[0].endswith(f"killed: bad?name{'x' * 52}, python3, python3 stdin"), ran
    assert lines[1:] == ["a process that was left running is killed: python3", "''"]


def test_an_error_in_the_launcher_leaves_no_process_and_no_descriptor():
    ran = drive("""
before = opened()
def broken(*_):
    raise RuntimeError("broken")
try:
    with launcher(broken) as it:
        it.run(LaunchPlan(spec("main", "import time; time.sleep(60)"), (spec("service", "pass"),)))
except RuntimeError as error:
    print(error)
print(children.has_children(), opened() == before, signal.set_wakeup_fd(-1))
""")
    assert ran.stdout == b"broken\nFalse True -1\n", ran


def test_the_launchers_own_lines_outlive_a_slow_reader():
    ran = subprocess.Popen(
        [sys.executable, "-c", DRIVER + """
with Loop() as loop, LauncherOutput(loop) as output:
    for number in range(5000):
        output.log_line(f"line {number} " + "x" * 40)
    print("said", flush=True)
    output.flush_log()
"""],
        env={**os.environ, "PYTHONPATH": str(ENTRYPOINTS)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert ran.stdout.readline() == b"said\n"
    lines = ran.communicate(timeout=100)[1].decode().splitlines()
    assert [line.split()[2] for line in lines] == [str(number) for number in range(5000)]


def test_a_process_that_cannot_be_forked_leaves_nothing_behind():
    ran = drive("""
if not os.geteuid():
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
before = opened()
try:
    children.start(spec("script", "pass"))
except UserCodeError as error:
    print(error)
print(opened() == before, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
""")
    first, second = ran.stdout.decode().splitlines()
    assert first.startswith("script cannot be started: Resource temporarily unavailable")
    assert second == "True set()"


@pytest.mark.parametrize("cluster", [None, {"isolate_requirements": True}], ids=["plain", "isolated"])
def test_no_file_of_the_source_hides_a_module_that_pip_imports(tmp_path, launch, cluster):
    code = dict.fromkeys(("pip.py", "runpy.py", "contextlib.py"), "raise SystemExit('the wrong one')")
    code.update({"train.sh": "echo trained", "requirements.txt": "# nothing is wanted\n"})
    launcher = launch(write_host(tmp_path / "algo-1", code=code, cluster=cluster, sagemaker_program="train.sh"))
    assert launcher.wait(100) == 0, launcher.output
    assert "trained" in launcher.output


def test_a_failure_file_off_a_training_host_is_left_alone(tmp_path, launch):
    failure = write_files(tmp_path / "elsewhere", {"output/failure": "another's"}) / "output/failure"
    assert launch(tmp_path / "elsewhere").wait() == 1
    assert failure.read_text() == "another's"
