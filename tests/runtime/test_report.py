"""What the failure file says, and that it is there."""

import json
import os
import shutil
import stat

import pytest
from fakes.host_folders import write_files, write_host

from scriptmode_runtime import _environment as environment, _report as report
from scriptmode_runtime._peers.connection import _LONGEST_LINE
from scriptmode_runtime._report import describe
from scriptmode_runtime._values.failure import HostFailure, excerpt, last_error, last_traceback
from scriptmode_runtime.contract import FAILURE_FILE_LIMIT, FAILURE_RECORD_LIMIT, TRACEBACK_LIMIT
from scriptmode_runtime.plan import ProcessSpec

SCRIPT = ProcessSpec("script", ("/venv/bin/python", "train.py"), {}, "/")
BROKEN = HostFailure("algo-1", "script", 1, "it broke")
RANK_ONE_EXITS = "Process name: [prterun-vm-3725@1,1]\n   Exit code:    3\n"
RANK_ONE_KILLED = "prterun noticed that process rank 1 with PID 3743 on node vm exited on\nsignal 9 (Killed).\n"


def described(tmp_path, spec, status, output, count=2, cluster=None, **hyperparameters):
    hosts = [f"algo-{number + 1}" for number in range(count)]
    base = write_host(tmp_path / "ml", hosts=hosts, cluster=cluster, **hyperparameters)
    return describe(environment.read(str(base), {}), spec, status, output)


@pytest.mark.parametrize(("text", "code"), [(RANK_ONE_EXITS, 3), (RANK_ONE_KILLED, 137)], ids=["exit code", "signal"])
def test_a_rank_is_named_with_the_host_it_ran_on(tmp_path, text, code):
    spec = SCRIPT._replace(name="mpirun")
    output = f"[1,1]<stderr>: it broke\n[1,0]<stdout>: fine\n{text}"
    cause = described(tmp_path, spec, 99, output, sagemaker_mpi_enabled=True)
    assert (cause.host, cause.process, cause.exit_code) == ("algo-2", "rank 1", code)
    assert "it broke" in cause.message
    assert "fine" not in cause.message


@pytest.mark.parametrize(
    ("status", "line", "code", "signal"),
    [
        (3, "exit code 3", 3, ""), (137, "exit code 137", 137, ""), (-9, "killed by SIGKILL", 137, "SIGKILL"),
        (-11, "killed by SIGSEGV", 139, "SIGSEGV"), (-99, "killed by signal 99", 227, "signal 99"),
        (0, "ended while it was still needed", 1, ""),
    ],
)  # fmt: skip
def test_the_first_line_is_host_process_and_end(tmp_path, status, line, code, signal):
    cause = described(tmp_path, SCRIPT, status, "the end\n")
    assert cause.message.splitlines()[0] == f"algo-1, script: {line}"
    assert cause.message.splitlines()[-1] == "the end"
    assert (cause.exit_code, cause.signal) == (code, signal)


def test_ordinary_output_has_a_heading_and_a_traceback_has_none(tmp_path):
    ordinary = described(tmp_path / "a", SCRIPT, 7, "epoch 1\nepoch 2\n").message
    assert ordinary == "algo-1, script: exit code 7\nits log ends with\nepoch 1\nepoch 2"
    first, hint, heading, rest = described(tmp_path / "b", SCRIPT, -9, "epoch 1\n").message.split("\n")
    assert (first, heading, rest) == ("algo-1, script: killed by SIGKILL", "its log ends with", "epoch 1")
    assert hint.startswith("If it was not killed on purpose")
    raised = 'epoch 1\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no\n'
    assert described(tmp_path / "c", SCRIPT, 1, raised).message == f"algo-1, script: exit code 1\n{raised.strip()}"
    assert described(tmp_path / "d", SCRIPT, 7, "\x1b[0m\n").message == "algo-1, script: exit code 7"


@pytest.mark.parametrize(
    ("single_machine", "words"),
    [(True, "words of rank 1"), (False, "its log ends with\nit broke")],
    ids=["one machine", "another machine"],
)
def test_the_words_of_one_host_are_not_taken_for_those_of_another(tmp_path, single_machine, words):
    write_files(tmp_path / "ml" / "output", {"failure": "words of rank 0"})
    write_files(tmp_path / "two" / "output", {"failure": "words of rank 1"})
    cluster = {"hosts": {"algo-2": {"base_dir": str(tmp_path / "two")}}, "single_machine": single_machine}
    output = f"[1,1]<stderr>: it broke\n{RANK_ONE_EXITS}"
    failure = described(
        tmp_path, SCRIPT._replace(name="mpirun"), 3, output, cluster=cluster, sagemaker_mpi_enabled=True
    )
    assert failure.message == f"algo-2, rank 1: exit code 3\n{words}"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
def test_a_failure_file_that_is_not_a_regular_file_does_not_delay_the_report(tmp_path, make):
    (tmp_path / "ml" / "output").mkdir(parents=True)
    make(tmp_path / "ml" / "output" / "failure")
    failure = described(tmp_path, SCRIPT, 1, "the end")
    assert failure.message == "algo-1, script: exit code 1\nits log ends with\nthe end"
    report.write(str(tmp_path / "ml" / "output"), BROKEN)


LAST_FRAME = '  File "train.py", line 7, in <module>\n    fit()\n'
FRAMES = "".join(f'  File "m{n}.py", line {n}, in f\n    f{n}()\n' for n in range(200)) + LAST_FRAME


def test_the_end_of_a_traceback_is_never_cut_out():
    text = excerpt(f"noise\nTraceback (most recent call last):\n{FRAMES}ValueError: the loss is not a number\n", 500)
    assert text.startswith("Traceback (most recent call last):\n  [...]\n  ")
    assert last_error(text) == "ValueError: the loss is not a number"
    assert text.endswith("ValueError: the loss is not a number")
    assert len(text) <= 500


def test_a_long_last_message_shows_its_beginning_with_its_frame_and_its_end():
    error = f"InvalidArgumentError: {'x' * 5000}\nthe very end\n"
    text = excerpt(f"Traceback (most recent call last):\n{FRAMES}{error}", 600)
    assert text.startswith("Traceback (most recent call last):\n  [...]\n  ")
    assert last_error(text).startswith("InvalidArgumentError: xxx")
    assert f"{LAST_FRAME}InvalidArgumentError: xxx" in text
    assert " [...] " in text
    assert text.endswith("the very end")
    assert len(text) <= 600


#: What Keras 2 writes before each state of a progress bar but the first.
BACKSPACES = "\b" * 60


def test_what_a_library_logs_after_the_error_does_not_push_it_out_and_colours_are_left_out():
    noise = "".join(f"2026-11-21 13:00:42.1: W tensorflow/core/x.cc:{n}] cancelled\n" for n in range(100))
    text = excerpt(f"Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'lr'\n{noise}", 900)
    assert "  File \"a.py\", line 1\nKeyError: 'lr'\n" in text
    assert text.endswith("x.cc:99] cancelled")
    assert len(text) <= 900
    assert excerpt("\x1b]0;title\x07\x1b[31m1/9\r2/9\r9/9 done\x1b[0m\r\nend\x00\r\n", 100) == "9/9 done\nend"
    keras = " 31/128 [======>......] - ETA: 0s - loss: 0.6949"
    output = f"\r{keras}{BACKSPACES}\r{keras}Traceback (most recent call last):\nE: no\n"
    assert excerpt(output[last_traceback(output) :], 100) == "Traceback (most recent call last):\nE: no"
    assert excerpt(f"\r{keras}{BACKSPACES}\r{keras}", 100) == keras


@pytest.mark.parametrize("room", [0, 1, 6, 50, 199, 230])
@pytest.mark.parametrize("before", [1, 300], ids=["one frame", "many frames"])
def test_an_excerpt_never_exceeds_its_room(room, before):
    frames = " x\n" * before
    assert len(excerpt(f"Traceback (most recent call last):\n{frames}E: {'y' * 999}", room)) <= room


# --- the record's fields

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 9, in <module>
  |     raise ExceptionGroup("two shards", errors)
  | app.ExceptionGroup: two shards (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 4, in read
    |     raise ValueError("the first")
    | ValueError: the first
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 4, in read
    |     raise TypeError("the second")
    | TypeError: the second
    +------------------------------------"""

RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
CHAINED = (
    f"{RAISED}KeyError: 'lr'\n\nThe above exception was the direct cause of the following exception:\n\n"
    f"{RAISED}app.errors.ConfigError: no rate\n"
)


@pytest.mark.parametrize(
    ("status", "output", "exception", "traceback"),
    [
        pytest.param(1, f"noise\n{RAISED}ValueError: no\n", "ValueError", f"{RAISED}ValueError: no", id="raised"),
        pytest.param(1, f"noise\n{CHAINED}", "app.errors.ConfigError", CHAINED.strip(), id="with a cause"),
        pytest.param(
            1,
            'noise\n  File "a.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n',
            "SyntaxError",
            'noise\n  File "a.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax',
            id="not compiled",
        ),
        pytest.param(7, "epoch 1\nepoch 2\n", "", "epoch 1\nepoch 2", id="no traceback"),
        pytest.param(1, RAISED, "", RAISED.strip(), id="a traceback that breaks off"),
        pytest.param(1, f"{RAISED}not a name: no\n", "", f"{RAISED}not a name: no", id="no type"),
        pytest.param(1, f"noise\n{GROUP}\n", "app.ExceptionGroup", GROUP, id="a group"),
        pytest.param(
            1,
            f"noise\n{GROUP}\n\nDuring handling of the above exception, another exception occurred:\n\n{RAISED}E: e",
            "E",
            f"{GROUP}\n\nDuring handling of the above exception, another exception occurred:\n\n{RAISED}E: e",
            id="after a group",
        ),
    ],
)
def test_the_type_and_the_traceback_of_the_last_error(tmp_path, status, output, exception, traceback):
    failure = described(tmp_path, SCRIPT, status, output)
    assert (failure.exception, failure.traceback) == (exception, traceback)


def test_tracebacks_name_the_files_of_the_source_and_not_the_copy_of_the_job(tmp_path):
    code = tmp_path / "ml" / "code"
    frames = f'File "{code}/words.py", line 7, in main\n  File "/usr/lib/python3/json.py", line 1, in f'
    output = f"Traceback (most recent call last):\n  {frames}\nValueError: {code}/words.py\n"
    failure = described(tmp_path, SCRIPT, 1, output)
    for text in (failure.message, failure.traceback):
        assert 'File "words.py", line 7, in main\n  File "/usr/lib/python3/json.py"' in text
        assert text.endswith(f"ValueError: {code}/words.py")


@pytest.mark.parametrize("colours", [("", ""), ("\x1b[35m", "\x1b[0m")], ids=["plain", "coloured"])
def test_a_secret_that_is_a_word_of_the_jobs_path_leaves_the_source_file_known(tmp_path, monkeypatch, colours):
    monkeypatch.setenv("DB_PASSWORD", "training")
    code = tmp_path / "training-1" / "ml" / "code"
    begin, end = colours
    frame = f'File {begin}"{code}/train.py"{end}, line 2, in main\n    fit()'
    output = f"Traceback (most recent call last):\n  {frame}\nOSError: no\n"
    text = described(tmp_path / "training-1", SCRIPT, 1, output).traceback
    assert 'File "train.py", line 2, in main\n    fit()' in text


def test_no_field_has_a_secret(tmp_path):
    write_files(tmp_path / "own" / "ml" / "output", {"failure": "my own words, not correct-horse\n"})
    own = described(tmp_path / "own", SCRIPT, 4, "the end\n", db_password="correct-horse")
    assert own.message == "algo-1, script: exit code 4\nmy own words, not ******"
    output = f"{RAISED}ModuleNotFoundError: No module named 'correct-horse'\n"
    failure = described(tmp_path, SCRIPT, 1, output, db_password="correct-horse")
    assert "correct-horse" not in repr(failure)
    assert failure.hint.startswith("****** is not installed")
    assert failure.traceback == f"{RAISED}ModuleNotFoundError: No module named '******'"


# --- the files


def record(output):
    return json.loads((output / "failure.json").read_text())


@pytest.fixture
def output(tmp_path):
    report.prepare(str(tmp_path / "output"))
    return tmp_path / "output"


def test_a_failure_leaves_a_file_with_nothing_but_the_message_and_a_record(output):
    assert sorted(path.stat().st_size for path in output.iterdir()) == [4096, FAILURE_RECORD_LIMIT]
    report.write(str(output), BROKEN)
    assert sorted(path.name for path in output.iterdir()) == ["failure", "failure.json"]
    assert (output / "failure").read_bytes() == b"it broke"
    texts = dict.fromkeys(("signal", "exception", "hint", "traceback"), "")
    assert record(output) == {"cause": "it broke", "host": "algo-1", "process": "script", "exit_code": 1, **texts}
    assert not any(path.stat().st_mode & stat.S_IXUSR for path in output.iterdir())


@pytest.mark.parametrize("make", [lambda path: path.touch(), os.mkfifo], ids=["empty", "a pipe"])
def test_the_scripts_own_words_are_kept_and_a_file_without_words_is_replaced(output, make):
    write_files(output, {"failure": "my own words", "failure.json": "my own words"})
    report.write(str(output), BROKEN)
    assert sorted(path.name for path in output.iterdir()) == ["failure", "failure.json"]
    assert (output / "failure").read_text() == "my own words"
    assert record(output)["cause"] == "it broke"
    (output / "failure").unlink()
    make(output / "failure")
    report.write(str(output), BROKEN)
    assert (output / "failure").read_text() == "it broke"


def test_a_failure_of_the_launcher_has_its_traceback_or_the_signal_that_stopped_it(output):
    message = "KeyError('x') in the runtime\nTraceback\n x"
    report.write(str(output), BROKEN._replace(process="launcher", message=message))
    assert (record(output)["cause"], record(output)["traceback"]) == ("KeyError('x') in the runtime", "Traceback\n x")
    report.write(str(output), HostFailure("algo-1", "launcher", 143, "algo-1: stopped by SIGTERM", graceful=True))
    assert (record(output)["exit_code"], record(output)["signal"]) == (143, "SIGTERM")


def test_a_record_of_the_longest_texts_is_within_its_limit(output):
    longest = "\x01😀" * 50_000
    failure = BROKEN._replace(
        host="h" * 63, process="p" * 63, message=f"{longest}\n{longest}", exception="E" * 200, hint="😀" * 300
    )
    report.write(str(output), failure._replace(traceback=longest))
    assert (output / "failure.json").stat().st_size <= FAILURE_RECORD_LIMIT
    assert len(record(output)["traceback"]) == TRACEBACK_LIMIT


def test_the_longest_failure_of_a_process_fits_a_message_to_another_host(tmp_path):
    failure = described(tmp_path, SCRIPT, 1, f"{RAISED}ValueError: {'😀' * 50_000}\n")
    assert len(json.dumps(failure._asdict())) < _LONGEST_LINE - 4096


def test_a_link_is_replaced_and_not_written_through(output, tmp_path):
    for name in ("failure", "failure.json"):
        (output / name).symlink_to(tmp_path / "elsewhere")
        (output / f".{name}.reserve").unlink()
        (output / f".{name}.reserve").symlink_to(tmp_path / "elsewhere")
    report.write(str(output), BROKEN)
    assert record(output)["cause"] == "it broke"
    assert (output / "failure").read_text() == "it broke"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_the_script_emptied_or_removed_is_made_again(output):
    shutil.rmtree(output)
    report.write(str(output), BROKEN)
    assert sorted(path.name for path in output.iterdir()) == ["failure", "failure.json"]
    assert (output / "failure").read_text() == "it broke"


@pytest.mark.parametrize("character", ["x", "é", "漢", "😀", "\ud800"], ids=["1", "2", "3", "4", "half a character"])
def test_a_long_message_is_cut_to_the_limit_in_characters_and_keeps_both_ends(output, character):
    report.write(str(output), BROKEN._replace(message=f"begin {character * 5000} end"))
    text = (output / "failure").read_text()
    assert len(text) == FAILURE_FILE_LIMIT
    assert text.startswith("begin ")
    assert text.endswith(" end")


def test_a_good_end_leaves_nothing(output):
    report.release(str(output))
    assert list(output.iterdir()) == []


def test_a_folder_that_cannot_be_written_or_was_deleted_with_its_host_is_not_another_error(tmp_path):
    (tmp_path / "output").write_text("a file")
    report.prepare(str(tmp_path / "output"))
    report.write(str(tmp_path / "output"), BROKEN)
    report.release(str(tmp_path / "output"))
    assert (tmp_path / "output").read_text() == "a file"
    report.prepare(str(tmp_path / "host" / "output"))
    shutil.rmtree(tmp_path / "host")
    report.write(str(tmp_path / "host" / "output"), BROKEN)
    assert not (tmp_path / "host").exists()
