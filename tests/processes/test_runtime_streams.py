"""The launcher's output is the children's, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.host_folders import write_host
from processes.driver import drive
from processes.launchers import ENTRYPOINTS, child, until


def train(base):
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    return subprocess.Popen(
        [sys.executable, "-m", "scriptmode_runtime"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_million_lines_arrive_byte_for_byte_in_flat_memory(tmp_path):
    (tmp_path / "talk.py").write_text(child("talks_a_lot.py"))
    wanted = subprocess.run(
        [sys.executable, tmp_path / "talk.py", "1000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    base = write_host(
        tmp_path / "algo-1", code={"train.py": child("talks_a_lot.py")}, sagemaker_program="train.py", blocks=1000
    )
    got, peak = bytearray(), 0
    with train(base) as process:
        while chunk := process.stdout.read1(1 << 16):
            got += chunk
            peak = max(peak, memory_of(process.pid))
    assert process.returncode == 0
    assert got == wanted.stdout
    assert 0 < peak < 20 * 1024


def memory_of(pid):
    """Peak kilobytes of a process; 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def test_a_partial_line_comes_through_at_once(tmp_path):
    script = "import sys, time; sys.stdout.write('50% done'); sys.stdout.flush(); time.sleep(60)"
    process = train(write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py"))
    try:
        assert process.stdout.read1(100) == b"50% done"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("others", [1, 3])
def test_lines_of_several_processes_are_never_mixed(tmp_path, others):
    program = tmp_path / "prints.py"
    program.write_text(child("prints_in_pieces.py"))
    waits = tmp_path / "prints_and_stays.py"
    waits.write_text(child("prints_in_pieces.py") + "\nimport time\nopen(sys.argv[2], 'w').close()\ntime.sleep(60)\n")
    done = [tmp_path / f"done{number}" for number in range(others)]
    main = tmp_path / "main.py"
    main.write_text(
        child("prints_in_pieces.py")
        + f"\nimport time\nwhile not all(map(os.path.exists, {list(map(str, done))})): time.sleep(0.01)\n"
    )
    ran = drive([str(main), "main"], *([str(waits), f"s{number}", str(path)] for number, path in enumerate(done)))
    *lines, end = ran.stdout.decode().splitlines()
    assert end == "well", ran
    names = ["main", *(f"s{number}" for number in range(others))]
    assert sorted(lines) == sorted(f"{name} begins {n} and {name} ends" for name in names for n in range(2000))


def test_a_line_without_end_does_not_hold_up_the_others_for_long(tmp_path):
    service = ["-c", "import time; print('no end', end='', flush=True); time.sleep(60)"]
    main = ["-c", "import time; time.sleep(0.3); print('through', flush=True)"]
    ran = drive(main, service)
    assert b"through" in ran.stdout
    assert ran.stdout.endswith(b"well\n")


def test_the_last_words_of_a_process_do_not_land_inside_anothers_line():
    finishes = "signal.signal(signal.SIGTERM, lambda *_: (print('0.5', flush=True), sys.exit()))"
    service = ["-c", f"import signal, sys, time; {finishes}; print('loss: ', end='', flush=True); time.sleep(60)"]
    main = ["-c", "import time; time.sleep(0.5); print('last words', end='')"]
    ran = drive(main, service)
    assert ran.stdout == b"loss: 0.5\nlast wordswell\n"


def test_a_service_that_ends_early_is_a_failure_and_ends_the_script():
    ran = drive(["-c", "import time; time.sleep(60)"], ["-c", "pass"])
    assert ran.stdout.endswith(b"service0 0\n")


def test_a_service_is_stopped_after_the_script_and_its_end_is_none_of_the_scripts():
    ran = drive(["-c", "print('trained')"], ["-c", "import time; time.sleep(60)"])
    assert ran.stdout == b"trained\nwell\n"
    assert b"service0 ended by SIGTERM" in ran.stderr


def test_output_without_a_reader_does_not_hurt(tmp_path):
    base = write_host(
        tmp_path / "algo-1", code={"train.py": child("talks_a_lot.py")}, sagemaker_program="train.py", blocks=100
    )
    process = train(base)
    process.stdout.read1(100)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(20) == 0


def test_a_slow_reader_loses_nothing(tmp_path):
    written = tmp_path / "written"
    script = f"print('x' * 300_000, flush=True); open({str(written)!r}, 'w').close()"
    base = write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py")
    process = train(base)
    until(written.exists)
    output, _ = process.communicate(timeout=100)
    assert output == b"x" * 300_000 + b"\n"
    assert process.returncode == 0


def test_progress_over_one_line_comes_through_at_once_and_as_it_is(tmp_path):
    go = tmp_path / "go"
    script = (
        "import os, time\n"
        "for n in range(3):\n"
        "    os.write(1, b'\\r%d%% \\xe2\\x96' % n)\n"
        f"    while not os.path.exists({str(go)!r} + str(n)): time.sleep(0.01)\n"
    )
    process = train(write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py"))
    for number in range(3):
        assert process.stdout.read1(100) == b"\r%d%% \xe2\x96" % number
        (tmp_path / f"go{number}").touch()
    output, _ = process.communicate(timeout=100)
    assert (output, process.returncode) == (b"", 0)


def test_broken_utf_8_is_harmless_in_log_and_report(tmp_path):
    script = "import os, sys; os.write(2, b'caf\\xe9 \\xf0\\x9f end\\n'); sys.exit(3)"
    base = write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py")
    process = train(base)
    output, _ = process.communicate(timeout=100)
    assert (output, process.returncode) == (b"caf\xe9 \xf0\x9f end\n", 3)
    assert (
        base / "output" / "failure"
    ).read_text() == "algo-1, script: exit code 3\nits log ends with\ncaf\ufffd \ufffd end"


def test_stdout_and_stderr_keep_their_order(tmp_path):
    script = "import os\nfor n in range(5000): os.write(1 + n % 2, b'%d\\n' % n)"
    process = train(write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py"))
    output, _ = process.communicate(timeout=100)
    assert output == b"".join(b"%d\n" % n for n in range(5000))


def test_lines_without_end_of_several_processes_take_time_by_their_length_alone_and_flat_memory():
    endless = "import os\nfor _ in range(800): os.write(1, b'x' * 65536)\n"
    wait = "import time; os.write(1, b'\\ny'); time.sleep(60)"
    peak = "; print(next(l for l in open(f'/proc/{os.getppid()}/status') if l.startswith('VmHWM')).split()[1])"
    ran = drive(["-c", f"{endless}os.write(1, b'\\n'){peak}"], ["-c", endless + wait], ["-c", endless + wait])
    assert ran.stdout.endswith(b"well\n")
    assert len(ran.stdout) > 800 * 65536
    memory = max(int(word) for word in ran.stdout.replace(b"well", b" ").replace(b"y", b" ").split() if word.isdigit())
    assert memory < 40 * 1024
