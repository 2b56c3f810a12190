"""Processes: which of them are a program's, how they are identified and found, and their stacks."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.processes import until

from scriptmode_runtime._processes import proc, process_tree
from scriptmode_runtime._processes.stacks import VARIABLE, StackRequests, read_stacks, request_stacks, stack_variables

#: A launcher whose program ended, where the number of the program's session is one of ``sleep``: of what the program
#: started, or of another program, which is not below a launcher that adopts no orphans.
LAUNCHER = """
import os, subprocess, sys
from scriptmode_runtime._processes import system
from scriptmode_runtime._processes.process_tree import ProcessTree
if {is_own}:
    system.adopt_orphans()
command = ["sh", "-c", "sleep 600 2>/dev/null >/dev/null & echo $!"]
program = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
started = int(program.stdout.readline())
program.wait()
tree = ProcessTree(program.pid, has_ended=True)
print(tree.is_alive(), tree.pids() == [started])
os.kill(started, 9)
"""


@pytest.mark.parametrize("is_own", [True, False], ids=["of the program", "of another one"])
def test_only_the_descendants_of_an_ended_program_belong_to_it(is_own):
    command = [sys.executable, "-c", LAUNCHER.format(is_own=is_own)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == f"{is_own} {is_own}\n"


def test_the_boot_is_known_again_once_files_can_be_opened():
    program = (
        "import resource; from scriptmode_runtime._processes.proc import boot_id as it; limit = resource.setrlimit;"
    )
    program += "limit(7, (3, 99)); print(repr(it())); limit(7, (99, 99)); print(len(it()))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True, timeout=600) == "''\n36\n"


UNFORKED = """
import os, resource, signal
from scriptmode_runtime._values.errors import UserCodeError
from scriptmode_runtime.plan import ProcessSpec
from scriptmode_runtime._processes import children
if not os.geteuid():
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
before = os.listdir("/proc/self/fd")
try:
    children.start(ProcessSpec("script", ("true",), {}, "/"))
except UserCodeError as error:
    print(error)
print(os.listdir("/proc/self/fd") == before, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_a_process_that_cannot_be_forked_leaves_nothing_behind():
    done = subprocess.run([sys.executable, "-c", UNFORKED], capture_output=True, text=True, check=True, timeout=600)
    first, second = done.stdout.splitlines()
    assert first.startswith("script cannot be started: Resource temporarily unavailable")
    assert second == "True set()"


def test_processes_are_known_by_more_than_their_number():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        identity = proc.identify(child.pid)
        assert proc.is_running(identity)
        assert child.pid in process_tree.descendants(os.getpid())
        assert not proc.is_running(proc.ProcessIdentity(child.pid, identity.started + 1, identity.boot))
        assert not proc.is_running(proc.ProcessIdentity(child.pid, identity.started, "another boot"))
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not proc.is_running(identity)


def test_processes_are_found_by_what_their_environment_says(tmp_path):
    marked = {**os.environ, "SAGEMAKER_BASE_DIR": f"{tmp_path}/hosts/algo-1"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=marked) as child:
        # The kernel shows no environment for a moment after the program has been executed.
        until(lambda: process_tree.find_by_variable(f"SAGEMAKER_BASE_DIR={tmp_path}/hosts/") == [child.pid])
        assert process_tree.find_by_variable(f"BASE_DIR={tmp_path}/hosts/") == []
        assert process_tree.kill_until_gone(lambda: process_tree.find_by_variable(f"SAGEMAKER_BASE_DIR={tmp_path}/"))


#: The leader of a group, and a member that ignores SIGTERM.
LEADER_AND_MEMBER = """
import os, signal, time
if os.fork():
    time.sleep(600)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True:
    time.sleep(600)
"""


def test_a_member_that_ignores_signals_is_killed_before_its_leader_is_reaped(monkeypatch):
    leader = subprocess.Popen([sys.executable, "-c", LEADER_AND_MEMBER], stdout=subprocess.PIPE, start_new_session=True)
    with leader.stdout as output:
        member = proc.identify(int(output.readline()))
    signalled = []

    def record(number, kind):
        # A leader that has not been reaped keeps the number of its group.
        signalled.append((kind, proc.process(number) is not None))
        os.killpg(number, kind)

    monkeypatch.setattr(process_tree, "signal_group", record)
    process_tree.stop_group(leader)
    assert signalled == [(signal.SIGKILL, True)]
    assert process_tree.wait_until(lambda: not proc.is_running(member), 10)
    assert leader.returncode == -signal.SIGKILL


STACKS = f"""
import os, signal, sys
from pathlib import Path

number, _, folder = os.environ[{VARIABLE!r}].split(":")
children = [os.fork()] if "fork" in sys.customized else []
if not children or not children[0]:
    os.kill(os.getpid(), int(number))
    print("most recent call first" in Path(folder, str(os.getpid())).read_text(), flush=True)
for child in children:
    child and os.waitpid(child, 0)
"""


@pytest.mark.parametrize("customized", ["alone", "fork"])
def test_a_process_writes_its_stacks_and_runs_a_hidden_sitecustomize(tmp_path, customized):
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.customized = {customized!r}")
    variables = {"PATH": os.defpath, **stack_variables(str(tmp_path), {"PYTHONPATH": str(tmp_path)})}
    command = [sys.executable, "-W", "error", "-c", STACKS]
    assert subprocess.check_output(command, env=variables, stderr=subprocess.STDOUT, text=True, timeout=600) == "True\n"


#: Stacks that change all the time, and native code, in which no handler of Python's runs.
BUSY = """import threading
def grow(n): return n if n < 2 else grow(n - 1) + grow(n - 2)
def work():
    while True: exec("grow(9)", {"grow": grow})
for _ in "ab": threading.Thread(target=work, daemon=True).start()
print("busy", flush=True)
work()"""
NATIVE = """import ctypes
print("native", flush=True)
print(ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1), flush=True)"""


@pytest.mark.parametrize(("code", "count"), [(BUSY, 5000), (NATIVE, 1)], ids=["busy", "native"])
def test_a_process_that_is_asked_answers_and_goes_on(tmp_path, code, count):
    variables = {"PATH": os.defpath, **stack_variables(str(tmp_path), {})}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=variables, **streams) as program:
        try:
            program.stdout.readline()
            for _ in range(count):
                program.send_signal(int(variables[VARIABLE].partition(":")[0]))
                time.sleep(0.0003)
            (report,) = read_stacks(str(tmp_path), {program.pid: 0})
            assert 'Stack (most recent call first):\n  File "<string>", line ' in report.text
            assert program.poll() is None
            assert code is BUSY or program.communicate(b"x")[0] == b"1\n"
        finally:
            program.kill()


def test_a_file_of_the_program_that_has_the_number_of_the_stacks_is_not_touched(tmp_path):
    code = f"""import os
os.closerange(3, 256)
own = open({str(tmp_path / "own")!r}, "wb+", buffering=0)
own.write(b"mine")
if not (child := os.fork()):
    own.seek(0)
    os._exit(own.read() != b"mine")
print(os.waitpid(child, 0)[1], flush=True)
input()"""
    variables = {"PATH": os.defpath, **stack_variables(str(tmp_path), {})}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=variables, **streams) as program:
        assert program.stdout.readline() == b"0\n"
        assert request_stacks(str(tmp_path))[program.pid] == -1
        program.communicate(b"\n")
    assert (tmp_path / "own").read_bytes() == b"mine"


@pytest.mark.parametrize("options", ["", ", preexec_fn=int"])
def test_a_child_that_is_about_to_execute_a_program_is_not_ended(tmp_path, options):
    code = f"import subprocess\nprint({{subprocess.run(['true']{options}).returncode for _ in range(300)}})"
    variables = {**os.environ, **stack_variables(str(tmp_path), {})}
    with subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, text=True) as program:
        while program.poll() is None:
            request_stacks(str(tmp_path))
        assert program.stdout.read() == "{0}\n"


PLACES = {
    "link": ("answer", lambda path: path.symlink_to("other"), {"answer"}),
    "fifo": ("answer", os.mkfifo, {"answer"}),
    "full disk": ("answer.new", lambda path: path.mkdir() or path.with_name("answer").touch(), {"answer.new"}),
}


@pytest.mark.parametrize(("name", "put", "left"), PLACES.values(), ids=PLACES)
def test_an_answer_is_a_new_file_or_missing_and_the_files_of_ended_processes_are_removed(tmp_path, name, put, left):
    folder, own = tmp_path / "stacks", str(os.getpid())
    folder.mkdir()
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    for file in ("request", own, str(ended.pid)):
        (folder / file).touch()
    put(folder / name)
    requests = StackRequests(str(tmp_path), str(folder), itertools.count().__next__, lambda _: "caf\udce9")
    requests.tick()
    requests.tick()
    assert {path.name for path in folder.iterdir()} == {own} | left


def test_the_line_of_a_process_is_one_of_its_script_in_its_main_thread(tmp_path):
    stacks = f'Stack (most recent call first):\n  File "{Path.cwd()}/venv/site-packages/fit.py", line 3 in fit\n'
    (tmp_path / str(os.getpid())).write_text(f'{stacks}\nThread 0x2:\n  File "other.py", line 4 in run\n')
    (report,) = read_stacks(str(tmp_path), {os.getpid(): 0})
    assert not report.line
