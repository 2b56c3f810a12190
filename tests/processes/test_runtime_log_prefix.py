"""Lines that say which process of which host they come from, where the job asks for it."""

import pytest
from fakes.host_folders import write_host, write_job
from processes.driver import drive
from processes.launchers import child


def host(tmp_path, script, **hyperparameters):
    return write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py", **hyperparameters)


def lines(launcher):
    return [line for line in launcher.output.splitlines() if not line.startswith("scriptmode: ")]


@pytest.mark.parametrize(
    ("variables", "prefix"),
    [({"SCRIPTMODE_LOG_PREFIX": "1"}, "[algo-1 script] "), ({"SCRIPTMODE_LOG_PREFIX": "0"}, ""), ({}, "")],
    ids=["asked for", "not asked for", "nothing said"],
)
def test_the_script_s_lines_begin_with_host_and_process(tmp_path, launch, variables, prefix):
    launcher = launch(host(tmp_path, "print('one\\n\\ntwo'); raise ValueError('no')"), **variables)
    assert launcher.wait() == 1
    assert lines(launcher)[:3] == [f"{prefix}one", prefix, f"{prefix}two"]
    assert lines(launcher)[-1] == f"{prefix}ValueError: no"
    assert all(line.startswith(prefix) for line in lines(launcher))
    assert launcher.failure.splitlines()[-1] == "ValueError: no"
    assert "[algo-1" not in launcher.failure


def test_installing_requirements_is_a_process_of_its_own(tmp_path, launch):
    code = {"train.py": "print('trained')", "requirements.txt": "# none\n"}
    base = write_host(tmp_path / "algo-1", code=code, sagemaker_program="train.py")
    launcher = launch(base, SCRIPTMODE_LOG_PREFIX="1")
    assert launcher.wait(60) == 0
    assert "[algo-1 script] trained" in lines(launcher)
    assert all(line.startswith(("[algo-1 requirements] ", "[algo-1 script] ")) for line in lines(launcher))


def test_progress_over_one_line_has_the_prefix_in_front_at_every_step(tmp_path, launch):
    script = "import os\nfor n in range(3): os.write(1, b'\\r%d%%' % n)\nos.write(1, b'\\r\\n')"
    launcher = launch(host(tmp_path, script), SCRIPTMODE_LOG_PREFIX="1")
    assert launcher.wait() == 0
    output = b"[algo-1 script] \r[algo-1 script] 0%\r[algo-1 script] 1%\r[algo-1 script] 2%\r\n"
    assert output in launcher.log.read_bytes()


def test_every_process_has_its_own_name_before_each_of_its_lines(tmp_path):
    program, done = tmp_path / "prints.py", tmp_path / "done"
    program.write_text(child("prints_in_pieces.py"))
    waits = tmp_path / "waits.py"
    waits.write_text(f"{child('prints_in_pieces.py')}\nimport time\nopen({str(done)!r}, 'w').close()\ntime.sleep(60)\n")
    main = tmp_path / "main.py"
    main.write_text(
        f"{child('prints_in_pieces.py')}\nimport time\nwhile not os.path.exists({str(done)!r}): time.sleep(0.01)\n"
    )
    ran = drive([str(main), "m"], [str(waits), "s"], prefix_lines=True)
    *got, end = ran.stdout.decode().splitlines()
    assert end == "well", ran
    wanted = [f"[algo-1 {process}] {name} begins {n} and {name} ends" for process, name in (("main", "m"), ("service0", "s")) for n in range(2000)]  # fmt: skip
    assert sorted(got) == sorted(wanted)


def test_a_line_without_end_is_ended_before_another_process_writes_and_goes_on_as_a_line_of_its_own(tmp_path):
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
    ran = drive(["-c", wait + main], ["-c", wait + service], prefix_lines=True)
    assert ran.stdout.decode().splitlines() == [
        "[algo-1 service0] no end",
        "[algo-1 main] through",
        "[algo-1 service0] , but later",
        "[algo-1 main] last",
        "well",
    ]


@pytest.mark.mpi
def test_mpirun_tags_its_ranks_itself(tmp_path, launch):
    mpi = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    job = write_job(tmp_path / "job", 1, {"train.py": "print('trained')"}, sagemaker_program="train.py", **mpi)
    launcher = launch(job["algo-1"], SCRIPTMODE_LOG_PREFIX="1")
    assert launcher.wait() == 0, launcher.output
    assert sorted(lines(launcher)) == ["[1,0]<stdout>: trained", "[1,1]<stdout>: trained"]


@pytest.mark.mpi
def test_ranks_without_tags_are_still_named_with_their_error(tmp_path, launch):
    mpi = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    script = (
        "import os, time\nprint('begun', flush=True)\nopen(os.environ['OMPI_COMM_WORLD_RANK'], 'w').close()\n"
        "while not (os.path.exists('0') and os.path.exists('1')): time.sleep(0.01)\n"
        "if os.environ['OMPI_COMM_WORLD_RANK'] == '1': raise ValueError('rank one\\n has had enough')\ntime.sleep(60)"
    )
    job = write_job(tmp_path / "job", 1, {"train.py": script}, sagemaker_program="train.py", **mpi)
    launcher = launch(job["algo-1"], SCRIPTMODE_LOG_PREFIX="0")
    assert launcher.wait() == 1
    assert lines(launcher).count("begun") == 2
    assert launcher.failure.startswith("algo-1, rank 1: exit code 1\n")
    assert "ValueError: rank one\n has had enough" in launcher.failure
    assert "prterun" not in launcher.failure
    assert "<stderr>" not in launcher.output
