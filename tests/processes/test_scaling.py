"""``scriptmode scale`` and ``Estimator.scale`` on real jobs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM, program
from fakes.processes import until

from scriptmode import MPI, DataError, Estimator, InstanceGroup, SpecError, TrainingJob
from scriptmode.cli import output
from scriptmode.results.scaling import Scaling, ScalingRow

pytestmark = pytest.mark.slow
#: With --sleep, no step is faster; with --fail, a job of that number of hosts fails at its seventh step.
TRAIN = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
for name, default in (("--sleep", 0.02), ("--last", 10000), ("--fail", 0)):
    parser.add_argument(name, type=float, default=default)
given = parser.parse_args()
hosts = len(json.loads(os.environ["SM_HOSTS"]))
print("batch_size=32", flush=True)
time.sleep(0.5)
for step in range(1, int(given.last) + 1):
    time.sleep(given.sleep)
    print(f"step {step}: loss={1 / step}", flush=True)
    if step == 7 and hosts == given.fail:
        sys.exit("no luck with this size")
"""


#: Reads a Pipe mode channel again and again, a block a step.
READS = """
import itertools, sys, time
block, sleep = int(sys.argv[1]), float(sys.argv[2])
steps = itertools.count(1)
for epoch in itertools.count():
    with open(f"/opt/ml/input/data/train_{epoch}", "rb") as pipe:
        while pipe.read(block):
            time.sleep(sleep)
            print("step", next(steps), flush=True)
"""


@pytest.fixture(scope="module")
def folder(user_folder):
    (user_folder / "train.py").write_text(TRAIN)
    (user_folder / "silent.py").write_text("print('hello')")
    (user_folder / "prices.toml").write_text('"local_process" = 36\n"ml.m5.xlarge" = 0.23\n')
    (user_folder / "prices.json").write_text('{"local_process": 3.6}')
    return user_folder


def measured(*words):
    done = program("scale", "train.py", "--json", *words)
    return json.loads(done.stdout), done


def test_each_size_has_a_rate_and_each_job_is_stopped_at_the_last_step(folder):
    found, done = measured("--hosts", "1,2", "--layouts", "single,mpi", "--steps", "100")
    assert done.returncode == 0
    assert f"share its {len(os.sched_getaffinity(0))} core" in found["limitation"]
    assert [(row["layout"], row["hosts"]) for row in found["rows"]] == [("single", 1), ("single", 2), ("mpi", 1), ("mpi", 2)]  # fmt: skip
    for row in found["rows"]:
        # 50 steps a second, without the half second of the warm-up; a busy machine is slower.
        assert 10 < row["steps_per_second"] < 52
        assert row["steps"] == pytest.approx(80, abs=8)
        trainers = row["hosts"] if row["layout"] == "mpi" else 1
        assert row["batches_per_second"] == pytest.approx(trainers * row["steps_per_second"])
        assert row["images_per_second"] == pytest.approx(32 * row["batches_per_second"])
        assert set(row["memory_bytes"]) == {f"algo-{number + 1}" for number in range(row["hosts"])}
        job = TrainingJob.attach(row["job"])
        assert job.status == "Stopped"
        assert max(int(line.message.split("step ")[1].split(":")[0]) for line in job.logs() if "step " in line.message) < 200  # fmt: skip
    assert found["rows"][0]["efficiency"] == 1
    assert found["rows"][1]["efficiency"] == pytest.approx(0.5, rel=0.3)
    assert found["rows"][3]["efficiency"] == pytest.approx(1, rel=0.3)
    assert found["fastest"] == {"layout": "mpi", "hosts": 2}
    assert (found["cheapest"], found["rows"][0]["cost"]) == (None, None)


def test_the_table_says_first_what_it_cannot_say_and_then_the_fastest_and_the_cheapest(folder):
    done = program("scale", "train.py", "--hosts", "1,2", "--layouts", "mpi", "--steps", "20", "--prices", "prices.toml",
                   "--price-as", "ml.m5.xlarge", "--plot", "scale.svg")  # fmt: skip
    first, head, *rows = done.stdout.splitlines()
    assert first.startswith("The hosts are processes of this machine and share its ")
    assert first.endswith("The cost assumes that a host of the type ml.m5.xlarge is as fast as a host here.")
    assert head.split("  ")[0] == "LAYOUT"
    assert all(name in head for name in ("STEPS/S", "IMAGES/S", "EFFICIENCY", "INPUT WAIT", "COST OF 1,000,000 IMAGES", "MEMORY BY HOST"))  # fmt: skip
    assert [row.split()[:2] for row in rows[:2]] == [["mpi", "1"], ["mpi", "2"]]
    assert re.search(r"\nfastest: mpi on [12] hosts?, [0-9.,]+ images/s\ncheapest: mpi on [12] host", done.stdout)
    assert "at 0.23 an hour for each host (ml.m5.xlarge)" in done.stdout
    assert Path("scale.svg").read_text().startswith("<?xml")
    assert done.stderr.count(" started\n") == 2


def test_a_short_measurement_is_named_and_rates_within_its_precision_are_equal():
    def row(hosts, rate, seconds):
        precision = 0.05 / seconds
        return ScalingRow("mpi", hosts, "job", 16, seconds, precision, rate, hosts * rate, cpu_percent={"algo-1": 3.0})

    # 16 steps of 20 ms are not measured to 5 % by log lines that are read every 50 ms.
    short = Scaling("", (row(1, 50.0, 0.32), row(2, 26.0, 0.57)))
    assert str(short).splitlines()[-3:] == [
        "mpi on 1 host was measured for 0.32 s, which is precise to 16%; measure more steps",
        "mpi on 2 hosts was measured for 0.57 s, which is precise to 9%; measure more steps",
        "fastest: mpi on 1 host, 50 batches/s",
    ]
    long = Scaling("", (row(1, 50.0, 10.0), row(2, 48.0, 10.0)), 0.23, "ml.m5.xlarge")
    assert [line.partition(",")[0] for line in str(long).splitlines()[-2:]] == [
        "fastest: mpi on 2 hosts", "cheapest: mpi on 1 host",
    ]  # fmt: skip


@pytest.mark.parametrize(("load", "is_busy"), [(0.4, False), (64.0, True)])
def test_a_busy_machine_is_named(folder, monkeypatch, load, is_busy):
    monkeypatch.setattr(os, "getloadavg", lambda: (load * len(os.sched_getaffinity(0)), 0.0, 0.0))
    found = Estimator(entry_point="train.py", instance_type="local_process").scale(hosts=[1], steps=10)
    assert ("when the first job started: other programs change the rates." in found.limitation) == is_busy


def test_the_cost_is_that_of_all_hosts_for_a_million_images(folder):
    found, _ = measured("--hosts", "2", "--steps", "20", "--prices", "prices.json", "--batch-size", "500")
    (row,) = found["rows"]
    assert found["cost_of"] == "1000000 images"
    assert row["images_per_second"] == pytest.approx(500 * row["steps_per_second"])
    assert row["cost"] == pytest.approx(1e6 / row["images_per_second"] * 2 * 3.6 / 3600)
    assert found["cheapest"] == {"layout": "single", "hosts": 2}


def test_the_wait_for_input_says_whether_the_script_or_its_input_is_slow(folder):
    (folder / "reads.py").write_text(READS)
    (folder / "large").mkdir()
    (folder / "large" / "part").touch()
    os.truncate(folder / "large" / "part", 10**9)
    (folder / "small").mkdir()
    for number in range(5_000):
        (folder / "small" / str(number)).write_bytes(b"1")
    pipe = ["scale", "reads.py", "--input-mode", "Pipe", "--hosts", "1", "--json"]
    found = []
    # A thousand files of one byte take longer to open than to read.
    for data, *words in (("large", "200", "--", "100000", "0.02"), ("small", "60", "--", "1000", "0")):
        done = program(*pipe, "--input", f"train={data}", "--steps", *words)
        found.append(json.loads(done.stdout)["rows"][0]["input_wait_percent"]["algo-1"])
    slow_script, slow_input = found
    assert slow_script < 40
    assert slow_input > 60
    assert not measured("--hosts", "1", "--steps", "200")[0]["rows"][0]["input_wait_percent"]


@pytest.mark.parametrize(("instance_type", "price"), [("ml.m5.xlarge", 0.23), ("ml.unknown", None)])
def test_the_price_of_a_type_of_sagemaker_is_asked_of_aws(folder, monkeypatch, instance_type, price):
    asked = []

    class PriceList(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers["X-Amz-Target"], request["ServiceCode"], request["Filters"]))
            hour = {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}} if price else {}
            product = {"terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": hour}}}}}
            body = json.dumps({"FormatVersion": "aws_v1", "PriceList": [json.dumps(product)] if price else []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), PriceList) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        account = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "eu-west-1"}
        for name, value in account.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", f"http://127.0.0.1:{server.server_port}")
        done = program("scale", "train.py", "--hosts", "2", "--steps", "20", "--price-as", instance_type, "--json")
        server.shutdown()
    fields = {"regionCode": "eu-west-1", "instanceName": instance_type, "component": "Training"}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
    assert asked == [("AWSPriceListService.GetProducts", "AmazonSageMaker", filters)]
    if price is None:
        assert done.returncode == 2
        assert "AWS's price list has no price for training in eu-west-1" in done.stderr
        assert " started" not in done.stderr
    else:
        found = json.loads(done.stdout)
        assert (found["price"], found["priced_type"]) == (price, instance_type)


def test_a_script_that_ends_before_the_last_step_is_measured_as_far_as_it_went(folder):
    (row,) = measured("--hosts", "1", "--steps", "100", "--", "--last", "20")[0]["rows"]
    assert (row["problem"], TrainingJob.attach(row["job"]).status) == ("", "Completed")
    assert row["steps"] == pytest.approx(16, abs=4)


def test_a_size_that_fails_says_why_and_the_others_are_measured(folder):
    found, done = measured("--hosts", "1,2,3", "--steps", "20", "--plot", "rest.png", "--", "--fail", "2")
    assert done.returncode == 1
    assert Path("rest.png").exists()
    assert [bool(row["steps_per_second"]) for row in found["rows"]] == [True, False, True]
    problem = found["rows"][1]["problem"]
    assert f"training job {found['rows'][1]['job']} failed: algo-" in problem
    assert "exit code 1: no luck with this size; read its log: scriptmode logs " in problem
    assert problem in done.stderr


def test_a_layout_that_fails_is_not_drawn(folder):
    rows = ScalingRow("mpi", 1, problem="failed"), ScalingRow("single", 1, batches_per_second=2.0)
    (axes,) = Scaling("", rows).plot().axes
    assert [line.get_label() for line in axes.lines][:1] == ["single"]
    with pytest.raises(DataError, match="no rate was measured, so there is nothing to draw; failed"):
        Scaling("", rows[:1]).plot()


def test_a_script_without_steps_is_an_error_with_the_next_step(folder):
    done = program("scale", "silent.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert "names no step in its log; have the script call print(f'step {step}', flush=True)" in done.stderr
    assert done.stderr.count(" started\n") == 1


def test_steps_of_another_form_are_values_of_a_metric(folder):
    (folder / "batches.py").write_text(
        "import time\nfor n in range(1000):\n time.sleep(0.02)\n print('seen', n, flush=True)"
    )
    done = program("scale", "batches.py", "--hosts", "1", "--steps", "30", "--metric", "step=seen ([0-9]+)", "--json")
    found = json.loads(done.stdout)
    assert found["rows"][0]["steps"] == pytest.approx(24, abs=4)
    # Without a batch size there are no images.
    assert (found["rows"][0]["images_per_second"], found["cost_of"]) == (None, "1000 batches")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_to_the_client_stops_the_job_that_runs(folder, number, code):
    before = {each["TrainingJobName"] for each in TrainingJob.list()}
    with subprocess.Popen([PROGRAM, "scale", "train.py", "--hosts", "1", "--steps", "9999"], stderr=subprocess.DEVNULL) as process:  # fmt: skip
        (name,) = until(lambda: {each["TrainingJobName"] for each in TrainingJob.list()} - before)
        job = TrainingJob.attach(name)
        until(lambda: any("step 3" in line.message for line in job.logs()))
        process.send_signal(number)
        assert process.wait(timeout=60) == code
    until(lambda: job.ended)
    assert job.status == "Stopped"


def test_a_script_that_ignores_sigterm_is_killed_after_seconds(folder):
    (folder / "stays.py").write_text(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{TRAIN}")
    began = time.monotonic()
    assert program("scale", "stays.py", "--hosts", "1", "--steps", "20").returncode == 0
    # Jobs that are started by fit have 120 s.
    assert time.monotonic() - began < 100


def test_an_estimator_keeps_its_own_settings_and_writes_no_results(folder):
    place = folder / "results"
    estimator = Estimator(
        entry_point="train.py", instance_type="local_process", instance_count=3, distribution=MPI(processes_per_host=2),
        output_path=place.as_uri(), checkpoint_s3_uri=(folder / "checkpoints").as_uri(),
        max_retry_attempts=2, use_spot_instances=True, max_run=3600, max_wait=7200,
    )  # fmt: skip
    found = estimator.scale(hosts=[1], steps=20)
    (row,) = found.rows
    assert (row.layout, found.fastest, found.cheapest) == ("mpi", row, None)
    assert row.batches_per_second == pytest.approx(2 * row.steps_per_second)
    assert (estimator.instance_count, estimator.output_path, place.exists()) == (3, place.as_uri(), False)
    described = TrainingJob.attach(row.job).describe()
    assert not {"CheckpointConfig", "RetryStrategy"} & described.keys()
    assert described["EnableManagedSpotTraining"] is False
    assert str(found).splitlines()[0] == found.limitation
    assert len(found.plot().axes) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": [0]}, "hosts is 0; give a whole number (int) of at least 1"),
        ({"hosts": []}, "hosts is empty"),
        ({"layouts": ["mpj"]}, "layouts has 'mpj'; did you mean 'mpi'?"),
        ({"steps": 1}, "steps is 1; give a whole number (int) of at least 2"),
        ({"batch_size": 0}, "batch_size is 0"),
        (
            {"prices": {"ml.m5.xlarge": 1}},
            "prices has no price of 'local_process'; add it, such as 'ml.m5.xlarge' = 0.23, or name another type with price_as",
        ),
        (
            {"prices": {"ml": {"m5": {"xlarge": 1}}}, "price_as": "ml"},
            "give the price of a host an hour, such as 0.23",
        ),
        (
            {"prices": {"local_process": float("inf")}},
            "prices has inf for 'local_process'; give the price of a host an",
        ),
        ({"hosts": 0}, "hosts is 0; give a whole number"),
        ({"price_as": "p3.2xlarge"}, "price_as is 'p3.2xlarge', but prices are missing"),
        ({"price_as": 3}, "price_as is 3, but prices are missing"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_job_starts(folder, arguments, message):
    before = len(TrainingJob.list())
    with pytest.raises(SpecError) as error:
        Estimator(entry_point="train.py", instance_type="local_process").scale(**arguments)
    assert message in str(error.value)
    assert len(TrainingJob.list()) == before


def test_groups_of_hosts_have_no_other_sizes(folder):
    groups = [InstanceGroup("one", "local_process", 1), InstanceGroup("two", "local_process", 1)]
    with pytest.raises(SpecError, match="instance_groups have a number of hosts each; measure an estimator with an"):
        Estimator(entry_point="train.py", instance_groups=groups).scale()


def test_jobs_that_are_billed_are_not_started(folder):
    estimator = Estimator(entry_point="train.py", instance_type="ml.m5.xlarge", role="arn:aws:iam::123456789012:role/r")
    with pytest.raises(
        SpecError, match="instance_type is 'ml.m5.xlarge', whose jobs are billed; measure on this machine"
    ):
        estimator.scale()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plot", "rates.xyz"], "--plot 'rates.xyz' cannot be drawn: "),
        (["--hosts", "1,b"], "hosts is 'b'; give a whole number (int) of at least 1 (--hosts)"),
        (["--job-name", "one"], "scale starts several jobs, but --job-name 'one' is the name of one"),
        (["--prices", "train.py"], "train.py is not valid YAML"),
        (["--prices", "missing.json"], "--prices 'missing.json' cannot be read"),
    ],
)
def test_a_wrong_option_is_a_usage_error(folder, words, message):
    done = program("scale", "train.py", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_plot_that_cannot_be_drawn_is_refused_before_a_job_starts(folder):
    without = (
        "import sys; sys.modules['matplotlib.figure'] = None; from scriptmode.__main__ import main; sys.exit(main())"
    )
    words = (sys.executable, "-c", without, "scale", "train.py", "--plot", "rates.svg")
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert "plot() needs Matplotlib, which is not installed: pip install matplotlib" in done.stderr
    assert done.returncode == 1
    (folder / "directory.svg").mkdir()
    (folder / "kept.svg").write_text("before")
    for path, why in (
        ("missing/rates.svg", "No such file or directory"),
        ("directory.svg", "Is a directory"),
        (f"{'a' * 300}.svg", "File name too long"),
    ):
        refused = program("scale", "train.py", "--plot", path)
        assert f"--plot {path!r} cannot be written: {why}" in refused.stderr
        assert refused.returncode == 1
        assert " started" not in done.stderr + refused.stderr
    for path in ("kept.svg", "new.svg"):
        output.check_figure_path("--plot", path)
    assert (Path("kept.svg").read_text(), Path("new.svg").exists()) == ("before", False)


@pytest.mark.tf
def test_a_tensorflow_program_is_measured_in_two_sizes(folder):
    notebooks = Path(__file__).parents[2] / "notebooks"
    inputs = [f"--input={name}={notebooks}/data/fashion_mnist/{name}" for name in ("train", "eval")]
    done = program("scale", "train_mwms.py", "--source-dir", str(notebooks / "code"), "--hosts", "1,2", *inputs,
                   "--distribution", "multi-worker-mirrored", "--metric", "step=^epoch ([0-9]+):", "--steps", "10",
                   "-p", "epochs=1000", "-p", "steps-per-epoch=10", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["rows"]:
        assert row["steps_per_second"] > 0
        assert row["steps"] == pytest.approx(8, abs=2)
        assert all(found > 100e6 for found in row["memory_bytes"].values())
