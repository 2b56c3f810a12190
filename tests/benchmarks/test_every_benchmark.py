"""`make bench` starts: every benchmark is found, imported and run once at its smallest size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: In a few seconds, and with this environment alone.
FAST = ("command_line", "failure", "host_agent", "job_list", "plan", "relay")
#: Those that install what they compare with, start clusters and servers, or wait for a clock.
SLOW = ("client", "cluster", "footprint", "launcher", "live_view", "mounts", "serve", "streams", "submit")
TENSORFLOW = ("first_step", "reader")
#: Its programs are trained by other tests, and the benchmark of containers trains with the functions of this module.
THOROUGH = ("slurm", "training")


def bench(*arguments):
    """Run what `make bench` runs, as make does: from the root of the checkout, with nothing set for the tests."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = (sys.executable, "-m", "tests.benchmarks", *arguments)
    return subprocess.run(command, check=False, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=1500)


def runs(name):
    """Assert that a benchmark ends well and prints figures, each with its unit."""
    done = bench("--smallest", name)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith(f"{name}: ")
    assert [line for line in done.stdout.splitlines() if line.startswith("  ")]


def test_make_bench_runs_this_command():
    assert "$(BIN)/python -m tests.benchmarks\n" in (ROOT / "Makefile").read_text()


def test_every_module_with_figures_is_a_benchmark_and_can_be_imported():
    done = bench("--list")
    assert done.returncode == 0, done.stderr
    words = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    listed = {word[:-1] for word in words if word.endswith(":")}
    modules = set(Path(__file__).parent.glob("*.py")) - {Path(__file__)}
    measuring = {path.stem for path in modules if "def run(folder: str)" in path.read_text()}
    assert listed == measuring == {*FAST, *SLOW, *TENSORFLOW, *THOROUGH, "containers"}


def test_a_benchmark_that_does_not_exist_is_refused():
    done = bench("nonesuch")
    assert done.returncode == 2
    assert "no benchmark 'nonesuch'; there are: client, submit" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_a_fast_benchmark_runs(name):
    runs(name)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_benchmark_runs(name):
    runs(name)


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", [*TENSORFLOW, *(pytest.param(name, marks=pytest.mark.thorough) for name in THOROUGH)])
def test_a_benchmark_of_tensorflow_runs(name):
    runs(name)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(2400)
def test_the_benchmark_of_containers_runs(built):
    runs("containers")
