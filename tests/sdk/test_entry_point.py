"""`scriptmode.testing.entry_point` runs a script as a host of a job would, and leaves the test's process as it was."""

import json
import logging
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import pytest
from fakes.host_folders import write_files
from fakes.processes import until
from processes.launchers import alive

from scriptmode import ParameterServer, SourceError, SpecError, TrainingInput, testing
from scriptmode.testing import Layout, layouts

MODES = ["in-process", "process", pytest.param("job", marks=pytest.mark.slow)]
#: Tells what it is given, and leaves a file in each of its directories.
FACTS = """
import json, os, sys
from pathlib import Path
facts = {"argv": sys.argv[1:], "environ": dict(os.environ), "data": Path(os.environ["SM_CHANNEL_TRAIN"], "part-0").read_text(),
         "code": sorted(os.listdir(".")), "name": __name__}
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    Path(os.environ["SM_MODEL_DIR"], "facts.json").write_text(json.dumps(facts))
    Path(os.environ["SM_OUTPUT_DATA_DIR"], "report").write_text("done")
print("Epoch 1/1\\nloss: 0.25", file=sys.stderr)
"""


@pytest.fixture
def run(tmp_path, monkeypatch, entry_point):
    """Return a function that writes a script and runs it; the directory of the tests is the user's."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # The fixture's paths are relative to the test's file.
    for name in ("train.py", "data"):
        assert not Path(__file__).with_name(name).exists()

    def run(script, **arguments):
        source = arguments.pop("source_dir", None)
        (folder / (source or ".")).mkdir(exist_ok=True)
        (folder / (source or ".") / "train.py").write_text(script)
        where = {"source_dir": str(folder / source)} if source else {}
        return entry_point("train.py" if source else str(folder / "train.py"), **where, **arguments)

    return run


def state():
    """Return what a script may change of this process."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)]
    streams = (sys.stdout, sys.stderr, sys.excepthook)
    modules = {name: sys.modules[name] for name in ("__main__", "json", "os")}
    return (
        [*warnings.filters], warnings.showwarning, dict(os.environ), Path.cwd(), [*sys.argv], [*sys.path], id(sys.path), handlers, streams, modules,
        [*logging.root.handlers], logging.root.level,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_script_has_the_arguments_variables_and_files_of_its_host(mode, run, tmp_path):
    (tmp_path / "part-0").write_text("a b c")
    done = run(
        FACTS,
        mode=mode,
        inputs={"train": str(tmp_path / "part-0")},
        hyperparameters={"epochs": 3, "name": "it's"},
        metric_definitions="keras",
        environment={"MINE": "1"},
        hosts=Layout("multi-worker-mirrored", 2, host=2),
    )
    assert (done.exit_code, done.failure, done.exception) == (0, None, None), done.log
    facts = json.loads((done.model / "facts.json").read_text())
    assert facts["argv"] == ["--epochs", "3", "--name", "it's"]
    assert (facts["data"], facts["code"], facts["name"]) == ("a b c", ["train.py"], "__main__")
    assert facts["environ"]["MINE"] == "1"
    # What the result has is what the script had.
    different = {name for name, text in done.variables.items() if facts["environ"].get(name) != text}
    assert different <= {"PATH", "PYTHONPATH"}
    if mode == "job":
        assert (done.variables, done.tf_config) == ({}, None)
    else:
        assert done.variables["SM_HP_EPOCHS"] == "3"
        assert done.tf_config["task"] == {"type": "worker", "index": 1}
        assert len(done.tf_config["cluster"]["worker"]) == 2
    assert (done.output / "report").read_text() == "done"
    assert done.metrics.of("loss").values("loss", "algo-2") == [0.25]
    assert "loss: 0.25" in done.log


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize(
    ("script", "exit_code", "failure"),
    [
        ("raise ValueError('seven')", 1, {"exception": "ValueError", "process": "script"}),
        ("import sys; sys.exit(3)", 3, {"exception": ""}),
        ("import sys; sys.exit('no data')", 1, {"traceback": "no data"}),
        ("import argparse; argparse.ArgumentParser().parse_args()", 2, {"hint": "Let the parser take --name value, or -n value for one letter, of each hyperparameter; flags go after --"}),
        ("exec('def f(:')", 1, {"exception": "SyntaxError"}),
    ],
    ids=["exception", "exit code", "exit with text", "argparse", "syntax"],
)  # fmt: skip
def test_a_failure_is_described_as_that_of_a_job(script, exit_code, failure, mode, run):
    done = run(script, mode=mode, hyperparameters={"unknown": 1})
    assert done.exit_code == done.failure.exit_code == exit_code
    assert failure == {name: getattr(done.failure, name) for name in failure}
    assert type(done.exception).__name__ == ((mode == "in-process" and failure.get("exception")) or "NoneType")


def test_a_script_may_replace_how_warnings_are_shown(run):
    script = (
        "import sys, warnings\n"
        "shown = warnings.showwarning\n"
        "def show(message, category, filename, lineno, file=None, line=None):\n"
        "    shown(message, category, filename, lineno, file=sys.stdout, line='the line')\n"
        "warnings.showwarning = show\n"
        "warnings.warn('careful')\n"
    )
    done = run(script)
    assert (done.exit_code, "careful" in done.log, "the line" in done.log) == (0, True, True), done.log


def test_an_exception_of_the_script_has_its_own_frames_alone(run):
    done = run("def f():\n    raise ValueError('seven')\nf()")
    lines = [line.partition(", in ")[2] for line in done.log.splitlines() if line.startswith('  File "')]
    assert lines == ["<module>", "f"]
    with pytest.raises(ValueError, match="seven"):
        raise done.exception


#: Scripts that change their process, and what they print at last.
HOSTILE = {
    "environment": "import os; os.environ.clear(); os.environ['X'] = '1'; os.chdir('/'); print('ok')",
    "exits elsewhere": "import os, sys; os.chdir('/'); sys.argv = []; sys.path = ['/']; print('ok'); sys.exit(0)",
    "directory removed": "import os, shutil; shutil.rmtree(os.getcwd()); print('ok')",
    "signals": "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('ok'))\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGTERM); time.sleep(0)",
    "logging": "import logging; logging.basicConfig(level=10, format='%(message)s'); logging.info('ok')",
    "streams": "import sys; sys.stdout.buffer.write(b'o'); sys.stdout.buffer.write(b'k\\n')\n"
    "sys.stdout = sys.stderr = None; sys.excepthook = None",
    "thread": "import threading, time\ndef late():\n    time.sleep(0.2); print('ok')\nthreading.Thread(target=late).start()",
    "forked child": "import multiprocessing as m\ndef child(): print('ok')\nm.get_context('fork').Process(target=child).start()",
    "spawned child": "import multiprocessing as m, os\ndef child(q): q.put('ok' + os.environ['SM_CURRENT_HOST'])\n"
    "if __name__ == '__main__':\n    c = m.get_context('spawn'); q = c.SimpleQueue(); p = c.Process(target=child, args=(q,))\n"
    "    p.start(); print(q.get()); p.join(); assert p.exitcode == 0",
    "fork": "import os, sys\nif pid := os.fork(): assert os.waitpid(pid, 0)[1] == 7 << 8; print('ok')\nelse: sys.exit(7)",
    "modules": "import sys, json, types; sys.modules['json'] = types; sys.modules['__main__'] = types; print('ok')",
    "warning": "import warnings; warnings.warn('ok'); warnings.simplefilter('ignore')",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_the_test_s_process_is_restored(script, run):
    before = state()
    done = run(script)
    assert done.exit_code == 0, done.log
    assert "ok" in done.log
    assert state() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, pytest.fail.Exception])
def test_what_ends_the_test_passes_through_the_script(error, run):
    before = state()
    with pytest.raises(error):
        run(f"import os; os.chdir('/'); from _pytest.outcomes import Failed; raise {error.__name__}('x')")
    assert state() == before


SIBLINGS = {
    "helper.py": "import os\nfrom package.inner import VALUE\nHERE = __file__\n", "package/__init__.py": "",
    "package/inner.py": "from . import other\nVALUE = other.OTHER\n", "package/other.py": "OTHER = 'real'\n",
    "settings.json": "{}",
}  # fmt: skip
IMPORTS = "import helper, os; print(helper.VALUE, helper.HERE, os.path.exists('settings.json'))"


@pytest.fixture
def siblings(tmp_path):
    return write_files(tmp_path / "user" / "source", SIBLINGS)


def test_siblings_are_the_user_s_files_and_are_loaded_again_by_each_run(run, siblings):
    assert run(IMPORTS, source_dir="source").log == f"real {siblings / 'helper.py'} True\n"
    assert not {"helper", "package", "package.inner"} & set(sys.modules)
    (siblings / "package" / "other.py").write_text("OTHER = 'changed'\n")
    assert run(IMPORTS, source_dir="source").log.startswith("changed ")


def test_a_module_that_the_test_has_patched_stays_patched_in_the_script(run, siblings, monkeypatch):
    monkeypatch.syspath_prepend(siblings)
    import helper

    monkeypatch.setattr(helper, "VALUE", "patched")
    monkeypatch.setattr(time, "gmtime", lambda: "never")
    assert run(f"{IMPORTS}\nimport time; print(time.gmtime())", source_dir="source").log.split() == [
        "patched", str(siblings / "helper.py"), "True", "never",
    ]  # fmt: skip
    assert sys.modules["helper"] is helper
    for name in ("helper", "package", "package.inner", "package.other"):
        del sys.modules[name]


@pytest.mark.parametrize("mode", MODES[:2])
def test_a_script_without_a_source_directory_has_no_siblings(mode, run, tmp_path, monkeypatch):
    (tmp_path / "user" / "beside.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "user")
    assert run("import beside", mode=mode).failure.exception == "ModuleNotFoundError"


def test_a_module_of_a_package_runs_as_the_job_starts_it(tmp_path, entry_point):
    files = {"pyproject.toml": "[project]\nname = 'x'\n", "trainer/__init__.py": "", "trainer/other.py": "X = 1",
             "trainer/task.py": "from . import other; print(__package__, other.X, __name__)"}  # fmt: skip
    write_files(tmp_path / "source", files)
    done = entry_point("trainer/task.py", source_dir=str(tmp_path / "source"))
    assert done.log == "trainer 1 __main__\n"
    assert "trainer" not in sys.modules


@pytest.mark.parametrize(
    ("script", "exit_code", "signal_name"),
    [("import os; print(1, flush=True); os._exit(5)", 5, ""), ("import os; os.kill(os.getpid(), 9)", 137, "SIGKILL")],
    ids=["os._exit", "killed"],
)
def test_a_process_of_its_own_may_end_in_any_way(script, exit_code, signal_name, run):
    done = run(script, mode="process")
    assert (done.exit_code, done.failure.signal) == (exit_code, signal_name)


def test_what_a_process_leaves_running_ends_with_it_and_its_output_is_in_the_log(run):
    done = run("import subprocess; print(subprocess.Popen(['sh', '-c', 'echo child; sleep 1000']).pid)", mode="process")
    child = int(next(line for line in done.log.splitlines() if line.isdigit()))
    until(lambda: not alive(child))


LAYOUTS = [
    ((), ["1-of-1-script"]),
    (("parameter-server", 2), ["parameter-server-1-of-2-master", "parameter-server-2-of-2-worker"]),
    (("multi-worker-mirrored", 1), ["multi-worker-mirrored-1-of-1-worker"]),
    (("mpi", 2), ["mpi-1-of-2-rank", "mpi-2-of-2-rank"]),
    ((ParameterServer(coordinator=True), 3), ["ParameterServer-1-of-3-chief"]),
    ((ParameterServer(evaluator=True), 2), ["ParameterServer-1-of-2-chief", "ParameterServer-2-of-2-worker",
                                            "ParameterServer-2-of-2-evaluator"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "expected"), LAYOUTS, ids=[" ".join(map(str, each[0])) for each in LAYOUTS])
def test_layouts_are_the_tasks_that_run_the_script(arguments, expected):
    assert [str(each) for each in layouts(*arguments)] == expected


@pytest.mark.parametrize("hosts", [*layouts(ParameterServer(evaluator=True), 2), *layouts("mpi", 2)])
def test_a_script_runs_as_each_task(hosts, run, request):
    assert request.node.callspec.id == str(hosts)
    done = run("import os; print([name for name in os.environ if name.startswith('OMPI')])", hosts=hosts)
    assert done.log == "[]\n"
    assert done.variables["SM_CURRENT_HOST"] == hosts.host_name
    assert (done.tf_config or {}).get("task", {}).get("type", "rank") == hosts.task


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "thread"}, "mode is 'thread'; give one of in-process, process, job"),
        ({"instance_count": 2}, "instance_count is not an argument here; leave it out; hosts= names the hosts"),
        ({"hosts": Layout(ParameterServer(coordinator=True), 2, host=2)}, "algo-2 does not run the script as task ''; its tasks are none: it runs TensorFlow's servers only; use one of layouts(...)"),
        ({"hosts": Layout("mpi", 1, task="ps")}, "algo-1 does not run the script as task 'ps'; its tasks are rank; use one of layouts(...)"),
        ({"hosts": Layout("parameter_server")}, "distribution is 'parameter_server'; did you mean 'parameter-server'?"),
        ({"inputs": {"a": TrainingInput("file:///etc/hosts", input_mode="Pipe")}}, "channel 'a' is in Pipe mode, which only a whole job can read; use File mode, or mode='job'"),
        ({"source_dir": "s3://b/sourcedir.tar.gz"}, "the source at s3://b/sourcedir.tar.gz is not on this machine, and only a whole job downloads it; give its directory, or use mode='job'"),
    ],
    ids=["mode", "fixed", "no script", "task", "distribution", "pipe", "source in S3"],
)  # fmt: skip
def test_what_cannot_run_is_refused(arguments, message, entry_point):
    with pytest.raises(SpecError) as refused:
        entry_point("train.py" if "source_dir" in arguments else __file__, **arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize("name", ["hyperparameter", "wait"])
def test_an_unknown_argument_is_one_that_the_estimator_does_not_have(name, entry_point):
    with pytest.raises(TypeError, match=f"the estimator has no argument '{name}'"):
        entry_point(__file__, **{name: None})


def test_a_name_of_the_sdk_v1_is_warned_of_at_the_line_of_the_test(entry_point, tmp_path):
    (tmp_path / "train.py").touch()
    for run in (entry_point, testing.entry_point):
        with pytest.warns(DeprecationWarning, match="train_volume_size") as warned:
            run(tmp_path / "train.py", train_volume_size=3)
        assert warned[0].filename == __file__


def test_a_host_that_does_not_exist_is_refused():
    with pytest.raises(SpecError, match=r"host is 3; give the number of a host, from 1 to 2"):
        Layout("mpi", 2, host=3)


def test_a_shell_script_runs_as_a_process_alone(tmp_path, entry_point):
    (tmp_path / "train.sh").write_text("echo $SM_CURRENT_HOST")
    with pytest.raises(SpecError, match="is not a Python program; use 'process'"):
        entry_point(tmp_path / "train.sh")
    assert entry_point(tmp_path / "train.sh", mode="process").log == "algo-1\n"
    with pytest.raises(SourceError, match="does not exist"):
        entry_point("missing.py")


def test_a_script_that_does_not_compile_is_refused(run):
    with pytest.raises(SourceError, match=r"cannot be compiled by the hosts' Python"):
        run("def f(:\n")


def test_files_of_a_run_without_a_directory_are_removed_with_its_result(tmp_path, monkeypatch):
    from scriptmode.testing import entry_point

    (tmp_path / "train.py").write_text("import os; open(os.environ['SM_MODEL_DIR'] + '/m', 'w').close()")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = entry_point(tmp_path / "train.py")
    assert [path.name for path in done.model.iterdir()] == ["m"]
    del done
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("mode", MODES)
def test_a_run_without_a_directory_that_is_refused_leaves_no_files(mode, tmp_path, monkeypatch):
    from scriptmode.testing import entry_point

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SourceError):
        entry_point("missing.py", mode=mode)
    (tmp_path / "train.py").write_text("raise KeyboardInterrupt")
    if mode == "in-process":
        with pytest.raises(KeyboardInterrupt):
            entry_point(tmp_path / "train.py")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
