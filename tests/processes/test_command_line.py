"""The ``scriptmode`` program, in processes of its own, on real local jobs: what each verb says and ends with."""

import json
import os
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM, documents, program
from fakes.terminal import in_terminal

#: Says what it was given, leaves a model, and ends as it is told.
TRAIN = """
import os, sys
print("given", *sys.argv[1:], flush=True)
for step in (1, 2):
    print(f"loss={1 / step}", flush=True)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights.txt"), "w") as file:
    file.write(os.listdir(os.environ["SM_CHANNEL_TRAIN"])[0] if "SM_CHANNEL_TRAIN" in os.environ else "none")
sys.exit(int(os.environ.get("ENDS_WITH", "0")))
"""


@pytest.fixture(scope="module")
def first(user_folder):
    (user_folder / "train.py").write_text(TRAIN)
    (user_folder / "data").mkdir()
    (user_folder / "data" / "part").touch()
    return program(
        "run", "train.py", "--instance-count", "2", "--job-name", "of-two", "-p", "epochs=3",
        "--metric", "loss=loss=([0-9.]+)", "--tag", "team=vision", "--input", "train=data", "--", "--rate", "1e-3",
    )  # fmt: skip


@pytest.fixture(scope="module")
def broken(first):
    return program("run", "train.py", "--job-name", "broken", "--env", "ENDS_WITH=7")


@pytest.fixture
def jobs(first, broken):
    """Two jobs that have ended: ``of-two`` on two hosts, then ``broken``."""


def test_a_job_is_run_and_its_log_is_shown_completely(first):
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("training job of-two started\n")
    assert "algo-2 | given --epochs 3 --rate 1e-3\n" in first.stdout
    # Both hosts wrote equal files, which is no warning.
    assert "training job of-two: Completed" in first.stdout.splitlines()[-1]
    timed = program("logs", "-f", "of-two", "--timestamps").stdout.splitlines()
    assert timed[-1] == first.stdout.splitlines()[-1]


def test_the_command_exits_with_the_exit_code_of_a_failed_script(broken):
    assert broken.returncode == 7
    assert broken.stderr.startswith("scriptmode: training job broken failed: algo-1, script: exit code 7")
    assert "Traceback" not in broken.stderr


def test_jobs_are_listed_newest_first_in_local_time(jobs, monkeypatch):
    # Nine hours ahead of UTC, all year.
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    head, *rows = [line.split() for line in program("list").stdout.splitlines()]
    # Both jobs have one Region and no distribution.
    assert head == ["CREATED", "AGE", "STATUS", "TIME", "HOSTS", "METRIC", "NAME"]
    assert [(row[3], row[-1]) for row in rows] == [("Failed", "broken"), ("Completed", "of-two")]
    now = datetime.now(timezone.utc)
    shown = datetime.strptime(" ".join(rows[0][:2]) + "+0900", "%Y-%m-%d %H:%M:%S%z")
    assert abs((shown - now).total_seconds()) < 120
    assert rows[0][2].endswith(("s", "min"))
    assert f"created  {' '.join(rows[1][:2])}+09:00" in re.sub("  +", "  ", program("describe", "of-two").stdout)
    assert "+09:00 algo-2 | given" in program("logs", "of-two", "--timestamps").stdout
    # The hosts and the last value of the metric of each.
    assert [row[-3:-1] for row in rows] == [["1", "-"], ["2", "loss=0.5"]]
    (summary,) = json.loads(program("list", "--status", "failed", "--json").stdout)
    assert summary["TrainingJobName"] == "broken"
    assert datetime.fromisoformat(summary["CreationTime"]).utcoffset() == timedelta(0)
    assert (summary["InstanceCount"], "LastMetric" in summary) == (1, False)
    # The C library keeps the zone of this process otherwise, for the tests that follow.
    monkeypatch.delenv("TZ")
    time.tzset()
    (summary,) = json.loads(program("list", "--name", "of-two", "--json").stdout)
    assert summary["LastMetric"] == {"MetricName": "loss", "Value": 0.5}
    assert program("list", "--since", "1d").stdout.count("\n") == 3
    assert program("list", "--since", "0s").stdout == ""
    tomorrow = f"{now + timedelta(days=2):%Y-%m-%d}"
    none = f"no such training jobs on this machine, in {os.environ['SCRIPTMODE_DATA_DIR']!r} (SCRIPTMODE_DATA_DIR)\n"
    assert program("list", "--since", tomorrow).stderr == none
    assert program("list", "--name", "of-", "--limit", "1").stdout.count("\n") == 2


@pytest.mark.parametrize("columns", [200, 80, 30])
def test_the_list_fits_the_terminal(jobs, columns):
    # Below the rows is a warning about what one of them lost.
    lines = [plain(line) for line in in_terminal([PROGRAM, "list"], columns=columns).splitlines()][:3]
    assert lines[0].split()[-1] == "NAME"
    assert [line.split()[-1] for line in lines[1:]] == ["broken", "of-two"]
    assert max(map(len, lines)) <= columns
    shown = set(lines[0].split())
    assert {"STATUS", "NAME"} <= shown
    # No job has a distribution.
    assert "KIND" not in shown
    assert ({"CREATED", "AGE", "TIME", "HOSTS", "METRIC"} <= shown) == (columns >= 80)


def test_a_status_has_its_colour_in_a_terminal_unless_colours_are_disabled(jobs, monkeypatch):
    red = "\x1b[31mFailed"
    for words in (("list",), ("describe", "broken"), ("stop", "broken")):
        assert red in in_terminal([PROGRAM, *words])
        assert "\x1b" not in program(*words).stdout
    assert "\x1b[31mscriptmode:\x1b[0m" in in_terminal([PROGRAM, "logs", "-f", "broken"])
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert red in program("list").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in program("list").stdout + in_terminal([PROGRAM, "list"])


def plain(line):
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_a_description_is_a_summary_or_json(jobs):
    text = program("describe", "of-two").stdout
    rows = dict(line.split(None, 1) for line in text.splitlines() if not line.startswith(" "))
    assert rows["status"].startswith("Completed, ")
    assert rows["hosts"] == "2 x local_process"
    assert rows["inputs"] == f"train = file://{Path.cwd()}/data"
    assert "epochs = 3" in text
    described = json.loads(program("describe", "of-two", "--json").stdout)
    assert (described["TrainingJobName"], described["ResourceConfig"]["InstanceCount"]) == ("of-two", 2)
    assert "failed           AlgorithmError" not in text
    rows = dict(line.split(None, 1) for line in program("describe", "--last").stdout.splitlines() if line[0] != " ")
    assert (rows["failed"], rows["log"]) == ("algo-1, script: exit code 7", "scriptmode logs broken --host algo-1")


def test_a_log_is_printed_completely_or_filtered_by_host_and_tail(jobs):
    assert "algo-1 | given --epochs 3 --rate 1e-3\n" in program("logs", "of-two").stdout
    assert {line[:6] for line in program("logs", "of-two", "--host", "algo-2").stdout.splitlines()} == {"algo-2"}
    said = documents(program("logs", "of-two", "--tail", "1", "--json", "--host", "algo-2").stdout)
    assert [line.pop("time")[:2] for line in said] == ["20"]
    assert said == [{"host": "algo-2", "message": "scriptmode: script ended with exit code 0"}]
    wrong = program("logs", "of-two", "--host", "algo-9")
    assert wrong.returncode == 2
    assert wrong.stderr == "scriptmode: training job of-two has no host 'algo-9'; it has algo-1 to algo-2\n"


@pytest.mark.parametrize("verb", [["logs", "-f"], ["logs", "-f", "--json"]], ids=" ".join)
def test_following_ends_with_the_jobs_exit_code(jobs, verb):
    good, bad = program(*verb, "of-two"), program(*verb, "--last")
    assert (good.returncode, bad.returncode) == (0, 7)
    assert "given --epochs 3" in good.stdout
    if "--json" in verb:
        assert all(documents(each) for each in (good.stdout, bad.stdout, bad.stderr))


def test_metrics_are_a_table_or_json(jobs):
    lines = [line.split() for line in program("metrics", "of-two").stdout.splitlines()]
    assert lines[0] == ["#", "host", "loss"]
    assert lines[1:] == [[n, host, loss] for n, loss in (("1", "1"), ("2", "0.5")) for host in ("algo-1", "algo-2")]
    rows = json.loads(program("metrics", "of-two", "loss", "--json").stdout)
    assert {"metric_name": "loss", "value": 1.0, "timestamp": None, "host": "algo-1"} in rows
    assert program("metrics", "of-two", "loss", "--plot", "loss.png").returncode == 0
    assert Path("loss.png").read_bytes().startswith(b"\x89PNG")
    assert "see scriptmode metrics" in program("metrics", "of-two", "--plot", "loss.xyz").stderr
    wrong = program("metrics", "of-two", "lsos")
    assert (wrong.returncode, "did you mean 'loss'?" in wrong.stderr) == (2, True)


def test_a_model_is_downloaded_extracted_or_as_an_archive(jobs, tmp_path):
    done = program("model", "download", "of-two", str(tmp_path / "model"))
    assert done.stdout == f"{tmp_path / 'model'}\n"
    assert (tmp_path / "model" / "weights.txt").read_text() == "part"
    packed = program("model", "download", "of-two", str(tmp_path / "packed"), "--no-extract", "--json")
    assert json.loads(packed.stdout)["files"] == ["model.tar.gz"]
    none = program("model", "download", "--last", str(tmp_path / "none"))
    why = "training job broken is Failed and has no model; look at its log"
    assert (none.returncode, none.stderr) == (1, f"scriptmode: {why}\n")
