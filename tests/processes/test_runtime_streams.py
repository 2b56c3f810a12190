"""The launcher's output is the children's, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.host_folders import write_job
from fakes.processes import until
from fakes.promptness import GENEROUS
from processes.driver import drive
from processes.launchers import ENTRYPOINTS, child, host


def train(base, stderr=subprocess.PIPE):
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    return subprocess.Popen(
        [sys.executable, "-m", "scriptmode_runtime"], env=env, stdout=subprocess.PIPE, stderr=stderr
    )


def test_a_million_lines_arrive_byte_for_byte_in_flat_memory(tmp_path):
    (tmp_path / "talk.py").write_text(child("talks_a_lot.py"))
    wanted = subprocess.run(
        [sys.executable, tmp_path / "talk.py", "1000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    base = host(tmp_path, child("talks_a_lot.py"), blocks=1000)
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


def test_lines_of_several_processes_are_never_mixed(tmp_path):
    waits = tmp_path / "prints_and_stays.py"
    waits.write_text(child("prints_in_pieces.py") + "\nimport time\nopen(sys.argv[2], 'w').close()\ntime.sleep(60)\n")
    done = [tmp_path / f"done{number}" for number in range(3)]
    main = tmp_path / "main.py"
    main.write_text(
        child("prints_in_pieces.py")
        + f"\nimport time\nwhile not all(map(os.path.exists, {list(map(str, done))})): time.sleep(0.01)\n"
    )
    services = ([str(waits), f"service{number}", str(path)] for number, path in enumerate(done))
    ran = drive([str(main), "main"], *services)
    *lines, end = ran.stdout.decode().splitlines()
    assert end == "well", ran
    names = ("main", "service0", "service1", "service2")
    wanted = [f"{name} begins {n} and {name} ends" for name in names for n in range(2000)]
    assert sorted(lines) == sorted(wanted)


def test_the_last_words_of_a_process_do_not_land_inside_anothers_line():
    finishes = "signal.signal(signal.SIGTERM, lambda *_: (print('0.5', flush=True), sys.exit()))"
    service = ["-c", f"import signal, sys, time; {finishes}; print('loss: ', end='', flush=True); time.sleep(60)"]
    main = ["-c", "import time; time.sleep(1.5); print('last words', end='')"]
    ran = drive(main, service)
    assert ran.stdout == b"loss: \nlast words\n0.5\nwell\n"


def test_a_service_that_ends_early_is_a_failure_and_ends_the_script():
    ran = drive(["-c", "import time; time.sleep(60)"], ["-c", "pass"])
    assert ran.stdout.endswith(b"service0 0\n")


def test_a_service_is_stopped_after_the_script_and_its_end_is_none_of_the_scripts():
    ran = drive(["-c", "print('trained')"], ["-c", "import time; time.sleep(60)"])
    assert ran.stdout == b"trained\nwell\n"
    assert b"service0 ended by SIGTERM" in ran.stderr


def test_output_without_a_reader_does_not_hurt(tmp_path):
    process = train(host(tmp_path, child("talks_a_lot.py"), blocks=100))
    process.stdout.read1(100)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(600) == 0


@pytest.mark.slow
def test_a_stop_ends_a_launcher_whose_output_nobody_reads(tmp_path):
    base = host(tmp_path, "import time\nprint('y' * 500_000, flush=True)\nopen('printed', 'w')\ntime.sleep(600)")
    with train(base, stderr=subprocess.STDOUT) as process:
        until((base / "code" / "printed").exists)
        process.terminate()
        assert process.wait(GENEROUS) == 143


def test_progress_over_one_line_comes_through_at_once_and_as_it_is(tmp_path):
    go = tmp_path / "go"
    script = (
        "import os, time\n"
        "for n in range(3):\n"
        "    os.write(1, b'\\r%d%% \\xe2\\x96' % n)\n"
        f"    while not os.path.exists({str(go)!r} + str(n)): time.sleep(0.01)\n"
    )
    process = train(host(tmp_path, script))
    for number in range(3):
        assert process.stdout.read1(100) == b"\r%d%% \xe2\x96" % number
        (tmp_path / f"go{number}").touch()
    output, _ = process.communicate(timeout=600)
    assert (output, process.returncode) == (b"", 0)


def test_broken_utf_8_is_harmless_in_log_and_report(tmp_path):
    script = "import os, sys; os.write(2, b'caf\\xe9 \\xf0\\x9f end\\n'); sys.exit(3)"
    base = host(tmp_path, script)
    process = train(base)
    output, _ = process.communicate(timeout=600)
    assert (output, process.returncode) == (b"caf\xe9 \xf0\x9f end\n", 3)
    failure = (base / "output" / "failure").read_text()
    assert failure == "algo-1, script: exit code 3\nits log ends with\ncaf\ufffd \ufffd end"


def lines(launcher):
    return [line for line in launcher.output.splitlines() if not line.startswith("scriptmode: ")]


def test_a_line_without_end_waits_for_half_a_second_and_delays_no_other_process(tmp_path):
    wait = "import os, time\ndef wait(path):\n    while not os.path.exists(path): time.sleep(0.01)\n"
    begun, through, later = (str(tmp_path / name) for name in ("begun", "through", "later"))
    service = (
        f"print('no end', end='', flush=True); open({begun!r}, 'w'); wait({through!r})\n"
        f"time.sleep(1.5); print(', but later', flush=True); open({later!r}, 'w'); time.sleep(60)"
    )
    main = (
        f"wait({begun!r}); time.sleep(0.2); print('through', flush=True); open({through!r}, 'w')\n"
        f"wait({later!r}); time.sleep(0.2); print('last', end='')"
    )
    ran = drive(["-c", wait + main], ["-c", wait + service])
    assert ran.stdout.decode().splitlines() == ["through", "no end, but later", "lastwell"]


@pytest.mark.mpi
def test_mpirun_tags_its_ranks_itself(tmp_path, launch):
    mpi = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    job = write_job(tmp_path / "job", 1, {"train.py": "print('trained')"}, sagemaker_program="train.py", **mpi)
    launcher = launch(job["algo-1"])
    assert launcher.wait() == 0, launcher.output
    assert sorted(lines(launcher)) == ["[1,0]<stdout>: trained", "[1,1]<stdout>: trained"]
