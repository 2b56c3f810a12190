"""Requirements of a host: real installations by pip and by uv, of wheels and packages beside the script."""

import base64
import json
import os
import re
import signal
import sys
import zipfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from fakes import wheels
from fakes.answering_server import served
from fakes.host_folders import write_host
from processes.launchers import alive, holding, until
from processes.small_disk import train_on_small_disk

pytestmark = pytest.mark.slow

SCRIPT = "import extra, sys; print('number', extra.NUMBER, sys.prefix)"
#: A package that is built with the installed setuptools, once a file exists; the build records that it began.
SLOW_SETUP = """
import os, time
from setuptools import setup
open(os.environ["BEGUN"], "w").close()
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.01)
setup(name="extra", version="1", py_modules=["extra"])
"""
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_CONFIG_FILE": os.devnull}


class Jobs:
    """Jobs of one host each with one directory of wheels."""

    def __init__(self, folder, launch):
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        #: Variables of the installer.
        self.settings = {**NO_INDEX, "PIP_FIND_LINKS": str(self.wheels)}
        self._launch = launch
        self._count = 0

    def add_wheel(self, **given):
        (self.wheels / f"extra-{given.get('version', '1')}-py3-none-any.whl").write_bytes(
            wheels.extra(**{"payload": 0, **given})
        )

    def start(self, code, **variables):
        """Start a job with the files ``code``; their names are keys."""
        self._count += 1
        files = {"train.py": SCRIPT, **code}
        base = self.folder / f"job-{self._count}"
        write_host(base, code=files, cluster={"isolate_requirements": True}, sagemaker_program="train.py")
        return self._launch(base, **self.settings, **variables)

    def run(self, requirements="extra==1\n", *, code=None):
        """Run a job to its good end; return its log."""
        launcher = self.start({"requirements.txt": requirements, **(code or {})})
        assert launcher.wait(600) == 0, launcher.output
        return launcher.output


@pytest.fixture
def jobs(tmp_path, launch):
    return Jobs(tmp_path, launch)


@pytest.fixture
def jobs_with_uv(jobs, monkeypatch):
    """Jobs for which uv finds the wheels; pip has no settings."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    search = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    own = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(jobs.wheels), "UV_CACHE_DIR": f"{jobs.folder}/uv"}
    jobs.settings = {**own, "PATH": search, "PIP_CONFIG_FILE": os.devnull}
    return jobs


class CodeArtifact(BaseHTTPRequestHandler):
    """The two operations that log in to a repository, and the repository's index, which wants the token."""

    def do_GET(self):
        url, is_index = f"http://127.0.0.1:{self.server.server_port}/pypi/repo/", self.path.startswith("/pypi")
        basic = f"Basic {base64.b64encode(b'aws:tok-3141592653').decode()}"
        self.send_response(401 if is_index and self.headers["Authorization"] != basic else 200)
        self.send_header("Content-Type", "text/html" if is_index else "application/json")
        self.end_headers()
        login = json.dumps({"authorizationToken": "tok-3141592653", "repositoryEndpoint": url}).encode()
        page = f'<a href="{url}{wheels.NAME}">{wheels.NAME}</a>'.encode() if is_index else login
        self.wfile.write(wheels.extra() if self.path.endswith(".whl") else page)

    do_POST = do_GET  # noqa: N815 - the server's name


def test_the_repository_of_codeartifact_is_pips_index(jobs):
    jobs.settings = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PIP_CONFIG_FILE": os.devnull}
    jobs.settings["CA_REPOSITORY_ARN"] = "arn:aws:codeartifact:us-east-1:123456789012:repository/domain/repo"
    with served(CodeArtifact) as server:
        jobs.settings["AWS_ENDPOINT_URL_CODEARTIFACT"] = f"http://127.0.0.1:{server.server_port}"
        output = jobs.run()
    assert "number 7" in output
    assert "tok-3141592653" not in output


@pytest.mark.long
def test_programs_and_data_of_the_requirements_are_those_of_the_hosts_own_environment(jobs):
    script = """
import os, subprocess, sys
subprocess.run(["extra-number"], check=True)
print("data", os.path.isfile(os.path.join(sys.prefix, "share", "extra", "data")))
"""
    jobs.add_wheel()
    log = jobs.run(code={"train.py": script})
    assert f"program 7 {jobs.folder}/job-1/overlay\n" in log
    assert "data True\n" in log


CHANGE_INSTALLED = "import extra; open(extra.__file__, 'w').write('NUMBER = 8')"


def test_uv_installs_where_pip_has_no_settings_and_no_job_changes_what_another_one_gets(jobs_with_uv):
    jobs_with_uv.add_wheel(requires=["click"])
    log = jobs_with_uv.run(code={"train.py": CHANGE_INSTALLED})
    assert " + extra==1\n" in log
    log = jobs_with_uv.run()
    assert " + extra==1\n" in log
    # That of the interpreter is there already.
    assert " + click" not in log
    assert f"number 7 {jobs_with_uv.folder}/job-2/overlay\n" in log


def test_uv_installs_another_version_of_what_the_interpreter_has_for_the_job_alone(jobs_with_uv):
    metadata = "Metadata-Version: 2.1\nName: click\nVersion: 0.0.1\n"
    with zipfile.ZipFile(jobs_with_uv.wheels / "click-0.0.1-py3-none-any.whl", "w") as archive:
        archive.writestr("click.py", "")
        archive.writestr("click-0.0.1.dist-info/METADATA", metadata)
        archive.writestr(
            "click-0.0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("click-0.0.1.dist-info/RECORD", "")
    script = "from importlib import metadata; print([metadata.version(name) for name in ('click', 'pytest')])"
    log = jobs_with_uv.run("click==0.0.1\n", code={"train.py": script})
    assert f"['0.0.1', '{pytest.__version__}']\n" in log
    assert [path.name for path in jobs_with_uv.folder.glob("job-1/overlay/lib/*/site-packages/*.dist-info")] == [
        "click-0.0.1.dist-info"
    ]


def test_requirements_that_uv_cannot_meet_fail_the_job(jobs_with_uv):
    launcher = jobs_with_uv.start({"requirements.txt": "extra==3\n"})
    assert launcher.wait(600) == 1
    assert launcher.failure.startswith("algo-1, requirements: exit code 1\n")
    assert "extra" in launcher.failure


@pytest.mark.long
def test_an_installation_that_is_killed_fails_the_job_and_leaves_no_process(jobs):
    begun = jobs.folder / "begun"
    code = {"requirements.txt": "./extra\n", "extra/setup.py": SLOW_SETUP, "extra/extra.py": "NUMBER = 7"}
    launcher = jobs.start(code, BEGUN=str(begun), GO=str(jobs.folder / "go"))
    until(begun.exists, 100, lambda: launcher.output)
    os.kill(int(re.search(r"requirements started, process (\d+)", launcher.output)[1]), signal.SIGKILL)
    assert launcher.wait(600) == 137, launcher.output
    until(lambda: not [pid for pid in holding(str(begun)) if alive(pid)])


def test_a_full_disk_fails_the_job(tmp_path):
    (tmp_path / wheels.NAME).write_bytes(wheels.extra(payload=8_000_000))
    base = write_host(
        tmp_path / "algo-1",
        code={"train.py": SCRIPT, "requirements.txt": f"{tmp_path}/extra-1-py3-none-any.whl\n"},
        cluster={"isolate_requirements": True},
        sagemaker_program="train.py",
    )
    done = train_on_small_disk(base, "6m", HOME=str(tmp_path), **NO_INDEX)
    assert done.code == 1
    assert "No space left on device" in done.output
