"""Requirements that are installed once for many jobs: real installations by pip, of wheels and packages beside the script."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fakes import plain_user
from fakes.host_folders import write_host
from processes.launchers import alive, holding, until
from processes.small_disk import train_on_small_disk

from scriptmode_runtime.requirements import __main__ as requirements
from scriptmode_runtime.requirements import content, environment_cache
from scriptmode_runtime.requirements.environment_cache import EnvironmentCache

pytestmark = pytest.mark.slow

INSTALLING = "scriptmode: installing the requirements into an environment that later jobs use"
CACHED = "scriptmode: using the cached environment of requirements.txt (made "
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
#: Installs, tries to change what is installed, and removes it.
AS_A_USER = """
import os
from scriptmode_runtime.requirements import __main__ as requirements
from scriptmode_runtime.requirements.environment_cache import EnvironmentCache

cache, home = EnvironmentCache("environments"), os.getcwd()
code = requirements.main(f"{home}/overlay", home, "environments", "1", "-r", f"{home}/requirements.txt")
(found,) = cache.environments()
packages = next(folder for folder, _, files in os.walk(found.path) if "extra.py" in files)
for path in ("extra.py", "new.py"):
    try:
        open(os.path.join(packages, path), "a")
    except OSError as error:
        print(type(error).__name__)
os.utime(os.path.join(found.path, "in_use"), (0, 0))
cache.remove_unused()
print(os.listdir("environments"))
"""
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_CONFIG_FILE": os.devnull}


def wheel(number=7, version="1", payload=0):
    """Return a wheel with the module ``extra``, the program ``extra-number`` and ``payload`` bytes of data."""
    content = io.BytesIO()
    info = f"extra-{version}.dist-info"
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("extra.py", f"NUMBER = {number}")
        program = zipfile.ZipInfo(f"extra-{version}.data/scripts/extra-number")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, "#!python\nimport extra, sys; print('program', extra.NUMBER, sys.prefix)\n")
        archive.writestr(f"extra-{version}.data/data/share/extra/data", os.urandom(payload))
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: extra\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return content.getvalue()


class Jobs:
    """Jobs of one host each with one cache and one directory of wheels."""

    def __init__(self, folder, launch):
        self.folder = folder
        self.cache = folder / "environments"
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.add_wheel()
        self._launch = launch
        self._count = 0

    def add_wheel(self, number=7, version="1"):
        (self.wheels / f"extra-{version}-py3-none-any.whl").write_bytes(wheel(number, version))

    def start(self, code, **variables):
        """Start a job with the files ``code``; their names are keys."""
        self._count += 1
        cluster = {"isolate_requirements": True, "environments": str(self.cache)}
        files = {"train.py": SCRIPT, **code}
        base = self.folder / f"job-{self._count}"
        write_host(base, code=files, cluster=cluster, sagemaker_program="train.py")
        return self._launch(base, **{**NO_INDEX, "PIP_FIND_LINKS": str(self.wheels), **variables})

    def run(self, requirements="extra==1\n", *, code=None, **variables):
        """Run a job to its good end; return its log."""
        launcher = self.start({"requirements.txt": requirements, **(code or {})}, **variables)
        assert launcher.wait(600) == 0, launcher.output
        return launcher.output

    def start_slow(self):
        """Start a job whose requirements take until the file ``go`` is there, and begin to: the file ``begun``."""
        code = {"requirements.txt": "./extra\n", "extra/setup.py": SLOW_SETUP, "extra/extra.py": "NUMBER = 7"}
        return self.start(code, BEGUN=str(self.folder / "begun"), GO=str(self.folder / "go"))

    def environments(self):
        return EnvironmentCache(str(self.cache)).environments()

    def make_older(self, seconds):
        """Let every environment be made and used longer ago."""
        for record in self.cache.glob("*.json"):
            document = json.loads(record.read_text())
            record.write_text(json.dumps({**document, "made": document["made"] - seconds}))
        for each in self.environments():
            os.utime(Path(each.path) / "in_use", (each.used - seconds, each.used - seconds))


@pytest.fixture
def jobs(tmp_path, launch):
    return Jobs(tmp_path, launch)


def test_a_later_job_uses_what_the_first_one_installed(jobs):
    first, second = jobs.run(), jobs.run()
    assert INSTALLING in first
    assert CACHED not in first
    assert re.search(re.escape(CACHED) + r"(just now|\d+ seconds? ago)\)\n", second)
    assert "Installing collected packages" not in second
    assert f"number 7 {jobs.folder}/job-2/overlay\n" in second
    assert len(jobs.environments()) == 1


@pytest.mark.long
def test_programs_and_data_of_the_requirements_are_those_of_the_hosts_own_environment(jobs):
    # Too long for the first line of a script, and with a blank.
    jobs.folder = jobs.folder / "a b" / ("long" * 30)
    script = """
import os, subprocess, sys
subprocess.run(["extra-number"], check=True)
print("data", os.path.isfile(os.path.join(sys.prefix, "share", "extra", "data")))
"""
    for number in (1, 2):
        log = jobs.run(code={"train.py": script})
        assert f"program 7 {jobs.folder}/job-{number}/overlay\n" in log
        assert "data True\n" in log


@pytest.mark.long
def test_what_a_script_installs_itself_stays_in_its_job(jobs):
    jobs.add_wheel(number=8, version="2")
    script = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "pip", "install", "-q", "extra==2"], check=True)
subprocess.run([sys.executable, "-c", "import extra; print('then', extra.NUMBER)"], check=True)
subprocess.run(["extra-number"], check=True)
"""
    log = jobs.run(code={"train.py": script})
    assert "then 8\n" in log
    assert "program 8 " in log
    assert "number 7 " in jobs.run()


def test_nothing_in_the_environment_may_be_written(jobs):
    jobs.run()
    (found,) = jobs.environments()
    entries = [path for path in Path(found.path).rglob("*") if not path.is_symlink() and path.name != "in_use"]
    assert len(entries) > 10
    assert [path for path in (Path(found.path), *entries) if path.stat().st_mode & 0o222] == []
    assert found.size == sum(path.lstat().st_size for path in Path(found.path).rglob("*"))


def test_users_that_are_not_root_cannot_change_an_environment_and_can_remove_it():
    with plain_user.folder_of_the_user() as home:
        (home / "extra-1-py3-none-any.whl").write_bytes(wheel())
        (home / "requirements.txt").write_text("./extra-1-py3-none-any.whl\n")
        assert plain_user.run(AS_A_USER, home=home).splitlines()[-3:] == ["PermissionError"] * 2 + ["[]"]


CHANGE_INSTALLED = """
import os, extra
at = os.stat(extra.__file__)
os.chmod(extra.__file__, 0o644)
open(extra.__file__, "r+").write("NUMBER = 8")
os.utime(extra.__file__, ns=(at.st_atime_ns, at.st_mtime_ns))
os.chmod(extra.__file__, at.st_mode)
"""


def test_a_host_without_a_namespace_that_changed_its_environment_changes_nothing_for_later_jobs(jobs):
    jobs.run(code={"train.py": CHANGE_INSTALLED})
    log = jobs.run()
    assert "installing the requirements again: the cached environment was changed after it was installed" in log
    assert "number 7 " in log
    assert CACHED in jobs.run()


@pytest.mark.parametrize("user", ["this one", "a plain user"])
def test_a_host_with_a_namespace_cannot_change_any_environment(user):
    with plain_user.folder_of_the_user() as home:
        (home / "extra-1-py3-none-any.whl").write_bytes(wheel())
        program = Path(__file__).with_name("children").joinpath("changes_environments.py").read_text()
        if user == "a plain user":
            printed = plain_user.run(program, str(home), home=home)
        else:
            environment = {**os.environ, "PYTHONPATH": str(plain_user.TESTS)}
            argv = (sys.executable, "-c", program, str(home))
            printed = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.partition(": ")[2] for line in printed.splitlines()]
    assert [line for line in lines if line.startswith("changed")] == ["changed False"] * 4, printed
    assert sum("using the cached environment" in line for line in lines) == 1
    assert "installing the requirements again" not in printed


@pytest.mark.long
def test_of_two_jobs_that_start_together_one_installs_and_the_other_waits(jobs):
    first = jobs.start_slow()
    until((jobs.folder / "begun").exists, 100, lambda: first.output)
    second = jobs.start_slow()
    second.says("scriptmode: waiting for another host or job, which installs the same requirements\n")
    (jobs.folder / "go").touch()
    assert [first.wait(600), second.wait(600)] == [0, 0], first.output + second.output
    assert INSTALLING in first.output
    assert INSTALLING not in second.output
    assert CACHED in second.output
    assert len(jobs.environments()) == 1


@pytest.mark.long
def test_an_installation_that_is_killed_leaves_nothing_that_a_job_uses(jobs):
    first = jobs.start_slow()
    until((jobs.folder / "begun").exists, 100, lambda: first.output)
    installer = int(re.search(r"requirements started, process (\d+)", first.output)[1])
    os.kill(installer, signal.SIGKILL)
    assert first.wait(600) == 137, first.output
    until(lambda: not [pid for pid in holding(str(jobs.folder / "begun")) if alive(pid)])
    assert [each.is_published for each in jobs.environments()] == [False]
    (jobs.folder / "go").touch()
    second = jobs.start_slow()
    assert second.wait(600) == 0, second.output
    assert INSTALLING in second.output
    assert [each.is_published for each in jobs.environments()] == [True]


@pytest.mark.long
def test_requirements_without_a_version_are_installed_again_after_a_day(jobs):
    jobs.run("extra\n")
    jobs.add_wheel(number=8, version="2")
    jobs.make_older(23 * 3600)
    log = jobs.run("extra\n")
    assert f"{CACHED}23 hours ago; SCRIPTMODE_REQUIREMENTS_CACHE=refresh installs it again)\n" in log
    assert "number 7 " in log
    jobs.make_older(2 * 3600)
    log = jobs.run("extra\n")
    assert "installing the requirements again: some name no version, and they were installed 1 day ago\n" in log
    assert "number 8 " in log


def test_pinned_requirements_stay_cached(jobs):
    jobs.run()
    jobs.make_older(20 * 24 * 3600)
    assert f"{CACHED}20 days ago)\n" in jobs.run()


@pytest.mark.long
def test_a_job_can_refresh_the_environment_and_one_can_do_without(jobs):
    jobs.run("extra\n")
    jobs.add_wheel(number=8, version="2")
    alone = jobs.run("extra\n", SCRIPTMODE_REQUIREMENTS_CACHE="0")
    assert "number 8 " in alone
    assert CACHED not in alone
    assert INSTALLING not in alone
    assert "number 7 " in jobs.run("extra\n")
    assert "number 8 " in jobs.run("extra\n", SCRIPTMODE_REQUIREMENTS_CACHE="refresh")
    last = jobs.run("extra\n")
    assert CACHED in last
    assert "number 8 " in last


def test_another_value_of_the_variable_is_refused(jobs):
    launcher = jobs.start({"requirements.txt": "extra\n"}, SCRIPTMODE_REQUIREMENTS_CACHE="yes")
    assert launcher.wait(600) == 1
    assert "SCRIPTMODE_REQUIREMENTS_CACHE" in launcher.failure
    assert "refresh" in launcher.failure


def test_without_a_cache_that_can_be_written_the_job_installs_for_itself(jobs):
    jobs.cache = Path("/proc/environments")
    log = jobs.run()
    assert "installing the requirements for this host alone: /proc/environments cannot be written: " in log
    assert f"number 7 {jobs.folder}/job-1/overlay\n" in log


def test_a_job_installs_for_itself_where_another_installation_hangs(tmp_path, monkeypatch, capfd):
    for name, value in {**NO_INDEX, "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "extra-1-py3-none-any.whl").write_bytes(wheel())
    (tmp_path / "requirements.txt").write_text("extra==1\n")
    arguments = ("-r", f"{tmp_path}/requirements.txt")
    monkeypatch.setattr(environment_cache, "WAIT_SECONDS", 0.0)
    key = content.read_content(str(tmp_path), arguments).digest

    def install(path):
        requirements.main(f"{tmp_path}/overlay", str(tmp_path), f"{tmp_path}/environments", "1", *arguments)
        raise environment_cache.InstallationError(1)

    with pytest.raises(environment_cache.InstallationError):
        EnvironmentCache(f"{tmp_path}/environments").obtain(key, lambda _: True, install, lambda: None)
    assert list(tmp_path.glob("overlay/lib/*/site-packages/extra.py"))
    assert "for this host alone: another host or job is not done after 10 minutes" in capfd.readouterr().out


def test_an_environment_that_a_job_uses_is_not_removed(jobs):
    cache = EnvironmentCache(str(jobs.cache))
    running = jobs.start({"requirements.txt": "extra==1\n", "train.py": "import time; time.sleep(600)"})
    running.says("script started")
    jobs.make_older(3600)
    assert cache.remove_unused(0) == []
    running.send(signal.SIGTERM)
    running.wait(600)
    assert [each.key for each in cache.remove_unused(0, dry_run=True)] == [jobs.environments()[0].key]
    (removed,) = cache.remove_unused(0)
    assert removed.size > 0
    assert list(jobs.cache.iterdir()) == []


def test_a_full_disk_fails_the_job_and_leaves_no_part_of_an_environment(tmp_path):
    (tmp_path / "extra-1-py3-none-any.whl").write_bytes(wheel(payload=8_000_000))
    disk = tmp_path / "disk"
    base = write_host(
        tmp_path / "algo-1",
        code={"train.py": SCRIPT, "requirements.txt": f"{tmp_path}/extra-1-py3-none-any.whl\n"},
        cluster={"isolate_requirements": True, "environments": str(disk / "environments")},
        sagemaker_program="train.py",
    )
    done = train_on_small_disk(base, "6m", HOME=str(tmp_path), **NO_INDEX)
    assert done.code == 1
    assert "No space left on device" in done.output
    assert done.free > 5_000_000
