"""`make bench` starts: every benchmark is found, imported and run once at its smallest size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks.__main__ import NAMES, PAGES

ROOT = Path(__file__).parents[2]
#: In a few seconds together, and with this environment alone.
FAST = ("command_line", "scale")
#: The others: they install what they compare with, start servers, train, or wait for a clock.
LONG = ("client", "first_step", "footprint", "launcher", "peers", "reader", "serve", "streams", "wire")


def bench(*arguments):
    """Run what `make bench` runs, as make does: from the root of the checkout, with nothing set for the tests."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = (sys.executable, "-m", "tests.benchmarks", *arguments)
    return subprocess.run(command, check=False, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=3000)


def check_runs(*names):
    """Assert that benchmarks end well and that each prints figures with their units."""
    done = bench("--smallest", *names)
    assert done.returncode == 0, done.stderr[-3000:]
    begun = [line.partition(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert begun[:-1] == list(names)
    assert len([line for line in done.stdout.splitlines() if line.startswith("  ")]) >= 2 * len(names), done.stdout


def test_every_module_with_figures_is_a_benchmark_and_can_be_imported():
    done = bench("--list")
    assert done.returncode == 0, done.stderr
    words = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    listed = {word[:-1] for word in words if word.endswith(":")}
    modules = set(Path(__file__).parent.glob("*.py")) - {Path(__file__)}
    measuring = {path.stem for path in modules if "def run(folder: str)" in path.read_text()}
    assert listed == measuring == {*FAST, *LONG, "training"}


def test_the_reference_has_the_table_of_each_benchmark():
    pages = "".join((ROOT / page).read_text() for page in PAGES)
    assert {
        name: pages.count(f"<!-- bench {name} -->\n\n| figure | measured | bound |\n") for name in NAMES
    } == dict.fromkeys(NAMES, 1)


@pytest.mark.slow
def test_the_fast_benchmarks_run():
    check_runs(*FAST)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.tf
@pytest.mark.timeout(3300)
@pytest.mark.parametrize("name", [*LONG, pytest.param("training", marks=pytest.mark.thorough)])
def test_a_long_benchmark_runs(name):
    check_runs(name)
