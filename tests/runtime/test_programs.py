"""How each kind of program is started, and which are refused."""

import os
import sys

import pytest
from fakes.host_folders import write_files, write_host

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._values.errors import UserCodeError


def here(tmp_path, program, code, **hyperparameters):
    base = write_host(tmp_path / "ml", code=code, sagemaker_program=program, **hyperparameters)
    return environment.read(str(base), {})


@pytest.mark.parametrize(
    ("program", "code", "argv"),
    [
        pytest.param("in/train.py", {"in/train.py": ""}, (sys.executable, "in/train.py"), id="script in a folder"),
        pytest.param("-c.py", {"-c.py": ""}, (sys.executable, "./-c.py"), id="script named like an option"),
        pytest.param("run.sh", {"run.sh": "#!/bin/bash -e\n"}, ("./run.sh",), id="shell script that says what runs it"),
        pytest.param("run.sh", {"run.sh": "true"}, ("/bin/sh", "./run.sh"), id="shell script that does not"),
        pytest.param("tool", {"tool": "#!/bin/sh\n"}, ("./tool",), id="executable"),
        pytest.param("run.sh", {"run.sh": "", "setup.py": ""}, ("/bin/sh", "./run.sh"), id="shell script of a package"),
        pytest.param("own.py", {"own.py": "", "setup.py": ""}, (sys.executable, "-m", "own"), id="package"),
        pytest.param("own", {"setup.py": ""}, (sys.executable, "-m", "own"), id="module that the package has elsewhere"),
        pytest.param(
            "in/a-b.py", {"in/a-b.py": "", "setup.py": ""}, (sys.executable, "-m", "in.a-b"), id="program of a package"
        ),
    ],
)  # fmt: skip
def test_a_program_is_started_as_its_name_and_its_folder_tell(tmp_path, program, code, argv):
    read = here(tmp_path, program, code)
    user_code.install(read)
    assert user_code.command(read).argv == argv


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        pytest.param("in/../../train.py", {"in/x": ""}, "lies outside", id="above, through a folder"),
        pytest.param("/bin/true", {}, "lies outside", id="a path of the machine's"),
    ],
)
def test_a_program_that_is_not_in_the_source_is_refused(tmp_path, program, code, said):
    with pytest.raises(UserCodeError, match=said):
        user_code.install(here(tmp_path, program, {"other": "", **code}))


def test_a_script_may_be_a_link_out_of_the_folder_and_a_command_may_not(tmp_path):
    for name in ("train.py", "tool"):
        write_files(tmp_path, {name: ""})
    script, command = here(tmp_path / "1", "train.py", {"x": ""}), here(tmp_path / "2", "tool", {"x": ""})
    (tmp_path / "1/ml/code/train.py").symlink_to(tmp_path / "train.py")
    (tmp_path / "2/ml/code/tool").symlink_to(tmp_path / "tool")
    assert user_code.install(script) is None
    with pytest.raises(UserCodeError, match="lies outside"):
        user_code.install(command)


def test_a_command_is_made_executable_for_those_who_may_not_run_it(tmp_path):
    read = here(tmp_path, "tool", {"tool": "#!/bin/sh\n"})
    path = tmp_path / "ml/code/tool"
    path.chmod(0o600)
    user_code.install(read)
    assert path.stat().st_mode & 0o777 == 0o711


def refuse(*_, **__):
    raise OSError(30, "Read-only file system")


def test_a_command_that_cannot_be_made_executable_is_named_with_the_next_step(tmp_path, monkeypatch):
    read = here(tmp_path, "tool", {"tool": "#!/bin/sh\n"})
    (tmp_path / "ml/code/tool").chmod(0o600)
    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(UserCodeError, match=r"'tool' .*: Read-only file system; chmod \+x it in the source, or .*\.sh"):
        user_code.install(read)


@pytest.mark.parametrize(
    ("program", "text", "mode"),
    [("tool", "#!/bin/sh\n", 0o755), ("run.sh", "true", 0o644), ("train.py", "", 0o644)],
    ids=["executable", "started by sh", "started by Python"],
)
def test_a_program_that_can_be_started_as_it_is_is_not_touched(tmp_path, monkeypatch, program, text, mode):
    read = here(tmp_path, program, {program: text})
    (tmp_path / "ml/code" / program).chmod(mode)
    monkeypatch.setattr(os, "chmod", refuse)
    assert user_code.install(read) is None


def test_a_source_may_be_the_program_itself(tmp_path):
    (tmp_path / "train.py").write_text("alone")
    asked = {"sagemaker_submit_directory": str(tmp_path / "train.py")}
    assert user_code.fetch(here(tmp_path / "1", "train.py", {}, **asked)) is None
    assert (tmp_path / "1/ml/code/train.py").read_text() == "alone"


def test_the_hyperparameter_of_older_images_names_the_requirements(tmp_path):
    read = here(tmp_path, "train.py", {"train.py": "", "in/wanted.txt": ""}, sagemaker_requirements="in/wanted.txt")
    assert user_code.install(read).argv[-2:] == ("-r", f"{tmp_path}/ml/code/in/wanted.txt")


def test_the_process_that_fetches_knows_the_jobs_region(tmp_path):
    asked = {"sagemaker_submit_directory": "s3://b/k"}
    of_request = here(tmp_path / "1", "train.py", {}, **asked, sagemaker_region="us-west-2")
    assert user_code.fetch(of_request).env == {"SAGEMAKER_REGION": "us-west-2"}
    assert user_code.fetch(here(tmp_path / "2", "train.py", {}, **asked)).env == {}
