"""``scriptmode compare`` and ``scriptmode.compare`` on real jobs."""

import json

import pytest
from fakes.command_line import program

import scriptmode

TRAIN = """
import argparse, os
parser = argparse.ArgumentParser()
for name in ("--rate", "--epochs", "--password"):
    parser.add_argument(name, default="3")
given = parser.parse_args()
for epoch in range(int(given.epochs)):
    print(f"epoch {epoch + 1} loss={float(given.rate) / (epoch + 1)}")
"""


@pytest.fixture(scope="module")
def folder(user_folder):
    (user_folder / "train.py").write_text(TRAIN)
    (user_folder / "other.py").write_text("print('no metric')")
    for name, hosts, words in (("slow", "1", ("--rate", "2")), ("fast", "2", ("--rate", "8", "--password", "secret"))):
        given = ("--instance-count", hosts, "--metric", "loss=loss=([0-9.]+)", "--", *words, "--epochs", "4")
        assert program("run", "train.py", "--job-name", name, *given).returncode == 0
    assert program("run", "other.py", "--job-name", "other").returncode == 0
    return user_folder


def test_what_differs_comes_first_and_then_what_is_the_same(folder):
    differs, _, same = program("compare", "slow", "fast").stdout.partition("\nthe same:\n")
    head, *rows = (line.split() for line in differs.splitlines() if line)
    assert head == ["slow", "fast"]
    assert {row[0]: row[1:] for row in rows if row[0] != "training"} == {
        "hosts": ["1", "x", "local_process", "2", "x", "local_process"],
        "rate": ["2", "8"],
        "password": ["-", "******"],
        "loss": ["0.5", "2"],
    }
    assert {"script": "train.py", "epochs": "4", "status": "Completed"}.items() <= dict(
        line.split() for line in same.splitlines() if not line.startswith("training time")
    ).items()


def test_values_are_json_by_name_and_job(folder):
    found = json.loads(program("compare", "slow", "fast", "other", "--json").stdout)
    assert found["jobs"] == ["slow", "fast", "other"]
    assert found["metrics"] == {"loss": {"slow": 0.5, "fast": 2.0, "other": None}}
    assert found["settings"]["rate"] == {"slow": "2", "fast": "8", "other": None}
    assert {"rate", "script"} <= set(found["different"]["settings"])
    assert found["different"]["metrics"] == ["loss"]


def test_jobs_are_compared_and_drawn_in_python(folder):
    found = scriptmode.compare("slow", scriptmode.TrainingJob.attach("fast"))
    (axes,) = found.plot("loss").axes
    assert {line.get_label(): list(line.get_ydata())[-1] for line in axes.lines} == {
        "slow": 0.5, "fast algo-1": 2.0, "fast algo-2": 2.0,
    }  # fmt: skip
    assert "rate" in str(found)
    assert "<td>rate</td><td>2</td><td>8</td>" in found._repr_html_()
    with pytest.raises(scriptmode.SpecError, match="no job has a metric 'los'; did you mean 'loss'"):
        found.plot("los")
    with pytest.raises(scriptmode.SpecError, match="give at least two jobs"):
        scriptmode.compare("slow")


def test_metrics_are_drawn_into_a_file(folder):
    assert program("compare", "slow", "fast", "--plot", "metrics.png").returncode == 0
    assert (folder / "metrics.png").read_bytes()[:4] == b"\x89PNG"
    assert "supported formats" in program("compare", "slow", "fast", "--plot", "metrics.zzz").stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["slow"], 2, "'slow' alone is named, but a comparison needs two jobs; name another one: scriptmode list"),
        (["slow", "fast", "--plot", "x.txt"], 2, "end its name in .png, .svg or .pdf, such as metrics.png"),
        (["slow", "fast", "--plot", "/nowhere/x.png"], 1, "--plot '/nowhere/x.png' cannot be written"),
    ],
)
def test_a_comparison_that_is_impossible_is_an_error(folder, words, code, message):
    done = program("compare", *words)
    assert done.returncode == code
    assert message in done.stderr
