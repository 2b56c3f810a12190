"""What the launcher leaves behind when it ends, cannot begin, or is stopped at an awkward moment."""

import os
import signal
import subprocess
import sys

from fakes.host_folders import write_files, write_host
from processes.driver import LAUNCHER, run
from processes.launchers import ENTRYPOINTS, until

DRIVER = f"""{LAUNCHER}
import os, resource, signal, sys
from scriptmode_runtime._processes import children
from scriptmode_runtime._values.errors import UserCodeError

def spec(name, program, stop="group"):
    return ProcessSpec(name, (sys.executable, "-c", program), dict(), "/", stop)

def described(spec, status, output):
    return HostFailure("algo-1", spec.name, 1, spec.name + " " + str(status))

def is_open(descriptor):
    try:
        return bool(os.fstat(descriptor))
    except OSError:
        return False

def opened():
    return [descriptor for descriptor in range(256) if is_open(descriptor)]
"""


def drive(program):
    return run(DRIVER + program)


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
leaves = '''
import subprocess, sys, time
python = ("python", "-c", "import time; time.sleep(60)", "--password=1")
for words in [("sleep", "60")] * 2 + [("bad\\\\nname" + "x" * 90, "60"), python]:
    program = sys.executable if words is python else "sleep"
    left = subprocess.Popen(words, executable=program, stdout=-3, stderr=-3)
    while not open(f"/proc/{left.pid}/cmdline").read():  # it is set after the start is reported
        time.sleep(0.01)
'''
with launcher(described) as it:
    it.run(LaunchPlan(spec("script", leaves)))
print(children.has_children())
""")
    assert ran.stdout == b"False\n", ran
    head, *names = ran.stderr.decode().splitlines()[-1].split(", ")
    assert head == "scriptmode: processes that were left running are killed: sleep (2)", ran
    assert sorted(names) == [f"bad?name{'x' * 52}", "python"], ran  # no arguments, and at most 60 characters


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


def test_the_last_lines_outlive_a_slow_reader():
    # Each look at the clock takes a second, so all of them take far more than a reader has that takes nothing.
    ran = drive("""
from itertools import count
with Loop(count().__next__) as loop, LauncherOutput(loop) as output:
    output.log_line("x" * 8_000_000)
    output.relay.write_line("x" * 8_000_000)
    HostProcesses("algo-1", loop, output).drain(log_killed=False)
    output.flush_log()
""")
    assert (ran.stdout.count(b"x"), ran.stderr.count(b"x")) == (8_000_000, 8_000_000)


def test_no_file_of_the_source_hides_a_module_that_pip_imports(tmp_path, launch):
    code = dict.fromkeys(("pip.py", "runpy.py", "contextlib.py"), "raise SystemExit('the wrong one')")
    code.update({"train.sh": "echo trained", "requirements.txt": "# nothing is wanted\n"})
    cluster = {"isolate_requirements": True}
    launcher = launch(write_host(tmp_path / "algo-1", code=code, cluster=cluster, sagemaker_program="train.sh"))
    assert launcher.wait(600) == 0, launcher.output
    assert "trained" in launcher.output


def test_off_a_training_host_nothing_is_written(tmp_path, launch):
    failure = write_files(tmp_path / "elsewhere", {"output/failure": "another's"}) / "output/failure"
    for folder in (tmp_path / "elsewhere", tmp_path / "nothing"):
        launcher = launch(folder)
        assert launcher.wait() == 1
        assert "this is not a training host" in launcher.output
    assert failure.read_text() == "another's"
    assert not (tmp_path / "nothing").exists()


def test_a_stop_between_preparing_and_the_script_is_not_lost(tmp_path):
    # A preparing run whose process leaves the pipe open, so that its end takes a while; then the script.
    program = """
leaves = "import os, time; print('prepared', flush=True); os.fork() or time.sleep(30)"
with launcher(described) as it:
    cause = it.run(LaunchPlan(main=spec("requirements", leaves)), last=False)
    cause = cause or it.run(LaunchPlan(main=spec("script", "print('the script ran')")))
print(cause.message if cause else "well")
"""
    log = tmp_path / "log"
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS)}
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", DRIVER + program], env=env, stdout=file, stderr=file)
    until(lambda: "requirements ended with exit code 0" in log.read_text())
    process.send_signal(signal.SIGTERM)
    process.wait(600)
    assert "algo-1: stopped by SIGTERM" in log.read_text()
    assert "the script ran" not in log.read_text()
