"""The engine of the guide, installed beside scriptmode, runs jobs and passes the suite; a broken one is an error."""

import json
import os
import signal
import subprocess

import pytest
from docs.documents import DOCS, blocks
from outside.installations import BARE, uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PROGRAM = """
from scriptmode import Estimator

common = {"entry_point": "train.py", "role": "r", "instance_count": 2}
print(Estimator(instance_type="niced", **common).plan())
for other in ("nicedd", "broken", "other", "lacking"):
    try:
        Estimator(instance_type=other, **common).request()
    except Exception as error:
        print(error)
"""
START = """
from scriptmode import Estimator

job = Estimator(entry_point="sleep.py", role="r", instance_count=1, instance_type="niced").fit(wait=False)
while job.secondary_status != "Training":
    pass
print(job.name)
"""
#: Engines whose packages are wrong, in a second package.
BROKEN = """
[project]
name = "wrong"
version = "1.0"

[project.entry-points."scriptmode.engines"]
broken = "absent:X"
other = "niced:NicedEngine"
lacking = "wrong:KIND"
"""


@pytest.fixture(scope="module")
def user(install, outside):
    """Return a function that runs a program where both packages are installed, in a directory with a script."""
    environment = install(BARE, ("pytest",))
    packages, home = outside / "packages", outside / "user of engines"
    own, wrong = packages / "own", packages / "wrong"
    for folder in (own, wrong):
        folder.mkdir(parents=True)
    for block in blocks(DOCS / "guides" / "engines.md"):
        if block.file:
            (own / block.file).parent.mkdir(exist_ok=True)
            (own / block.file).write_text(block.text)
    (wrong / "pyproject.toml").write_text(BROKEN)
    (wrong / "wrong.py").write_text("from scriptmode.engines import *; KIND = HostKind('x', engine='scriptmode.engines:Engine')")  # fmt: skip
    installed = packages / "installed"
    uv("pip", "install", "--quiet", "--no-deps", "--python", environment.python, "--target", installed, own, wrong)
    variables = {**environment.variables(home), "PYTHONPATH": str(installed)}
    (home / "train.py").write_text("import os; print('niceness', os.nice(0))")

    def user(*command, has_packages=True):
        env = variables if has_packages else {**variables, "PYTHONPATH": ""}
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=600, cwd=home, env=env,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    user.home = home
    return user


def test_the_engine_of_the_guide_runs_a_job(user):
    done = user("scriptmode", "run", "train.py", "--instance-type", "niced", "--instance-count", "2")
    assert done.returncode == 0, done.stderr
    for host in ("algo-1", "algo-2"):
        assert f"{host} | niceness {os.nice(0) + 10}\n" in done.stdout
    assert "Completed" in user("scriptmode", "list").stdout


def test_the_engine_of_the_guide_passes_the_suite(user, outside):
    done = user("python", "-m", "pytest", "-q", outside / "packages" / "own" / "tests")
    assert done.returncode == 0, done.stdout
    assert " passed in " in done.stdout


def test_a_job_whose_engine_was_uninstalled_is_not_ended_without_it(user):
    (user.home / "sleep.py").write_text("import time; time.sleep(3600)")
    started = user("python", "-c", START)
    assert started.returncode == 0, started.stderr
    name = started.stdout.split()[-1]
    (record,) = (path for path in user.home.rglob("processes.json") if path.parent.name == name)
    os.kill(json.loads(record.read_text())["agent"]["pid"], signal.SIGKILL)
    described = user("scriptmode", "describe", name, has_packages=False)
    assert "InProgress" in described.stdout
    assert "the engine of 'niced' is not installed: install its package" in described.stdout + described.stderr
    refused = user("scriptmode", "rm", "--force", name, has_packages=False)
    assert refused.returncode == 1
    assert "has not ended, and the engine of 'niced' is not installed" in refused.stderr
    refused = user("scriptmode", "stop", "--wait", name, has_packages=False)
    assert refused.returncode == 1
    assert "cannot be stopped: its agent died, and the engine of 'niced' is not installed" in refused.stderr
    assert "Failed" in user("scriptmode", "describe", name).stdout
    again = user("scriptmode", "rerun", name, has_packages=False)
    assert "ResourceConfig.InstanceType is 'niced'; the local platform runs 'local_process'" in again.stderr
    assert user("scriptmode", "rm", name, has_packages=False).returncode == 0


def test_a_plan_and_the_errors_know_the_engines(user):
    done = user("python", "-W", "ignore", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "processes of low priority" in done.stdout
    assert "did you mean 'niced'?" in done.stdout
    assert "'broken', whose engine absent:X fails: ModuleNotFoundError" in done.stdout
    assert "'other', and niced:NicedEngine is not a HostKind" in done.stdout
    assert "the engine scriptmode.engines:Engine fails: TypeError" in done.stdout


def test_the_doctor_and_the_engine_of_pods_work_beside_broken_engines(user):
    report = user("scriptmode", "doctor").stdout
    assert "problem: 0" in report
    assert "trial pod" not in report
    refused = user("scriptmode", "doctor", "--platform", "kubernetes")
    assert "problem  cluster " in refused.stdout
    arguments = ("train.py", "--instance-type", "kubernetes", "--image-uri", "image")
    job = user("scriptmode", "run", *arguments)
    assert job.returncode != 0
    assert "scriptmode: there is no Kubernetes cluster: this is no pod, and" in job.stderr
    assert "; set KUBECONFIG, or run scriptmode in the cluster: scriptmode serve manifests" in job.stderr
