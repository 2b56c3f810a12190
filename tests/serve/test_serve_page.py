"""The web page of `scriptmode serve` in a browser, with real jobs, and which requests it is for."""

import json
import os
import re
import urllib.error
import urllib.request
from importlib.resources import files
from types import SimpleNamespace

import pytest
from fakes.processes import until
from hypothesis import given
from hypothesis import strategies as st
from notebooks.jupyter_lab import browser_page
from serve.conftest import TENSORFLOW, serving

from scriptmode.core.spec.metric_definitions import PRESETS
from scriptmode.errors import DataError, JobNotFoundError
from scriptmode.serve.access_keys import AccessKeys
from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.job_metrics import MetricValue
from scriptmode.serve.job_rows import METRIC_SECONDS, SETTING_SECONDS, JobRows
from scriptmode.serve.page import TARGET, PageOperations, is_for_page
from scriptmode.serve.tag_operations import TagOperations

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
SCRIPT = f"""
print({HOSTILE!r})
for step in range(5):
    print(f"loss={{1 / (step + 1):.3f}}")
print("loss=nan")
"""
METRICS = [{"Name": f"loss {HOSTILE}"[:255], "Regex": "loss=([0-9.]+|nan)"}]
#: Two epochs of two steps on each host, with values that `--rate` scales.
EPOCHS = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=1)
rate = parser.parse_known_args()[0].rate
for epoch in (1, 2):
    print(f"Epoch {epoch}/2")
    for step in (1, 2):
        print(f"step {2 * epoch + step - 2} loss={rate / (epoch * step):.3f}")
    print(f"accuracy={epoch / 4}")
print("Total: 100%")
"""
EPOCH_METRICS = [
    {"Name": "loss", "Regex": "loss=([0-9.]+)"},
    {"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"},
]
ALGORITHM = {"TrainingInputMode": "File", "TrainingImage": TENSORFLOW, "MetricDefinitions": METRICS}
NAME = "page-test-1"
SECONDS = 60
ONE_HOST, TWO_HOSTS = (f"{count} \N{MULTIPLICATION SIGN} ml.m5.xlarge" for count in (1, 2))


class Browser:
    """A browser at the page of one server."""

    def __init__(self, page, url):
        self.page = page
        self.url = url

    def open(self, fragment=""):
        self.page.open("about:blank")
        self.page.open(f"{self.url}/{fragment}")

    def value(self, expression):
        return self.page.value(expression)

    def until(self, expression):
        return until(lambda: self.value(f"document.readyState === 'complete' && ({expression})"), SECONDS)

    def until_shown(self, text):
        return self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, text, within="#content"):
        found = (
            f"[...document.querySelectorAll('{within} button, {within} a')].find(each => each.innerText === {text!r})"
        )
        self.until(f"!!{found} && !{found}.disabled")
        self.value(f"{found}.click()")

    def rows(self):
        """The cells of the list, by columns' titles."""
        return self.value(
            """[...document.querySelectorAll('.list tbody tr')].map(row => Object.fromEntries([...row.children].slice(1)
            .map((cell, index) => [row.closest('table').querySelectorAll('thead button')[index].innerText, cell.innerText])))"""
        )

    def names(self):
        return [row["Name"] for row in self.rows()]

    def select(self, *names):
        for name in names:
            box = f"document.querySelector('[aria-label={json.dumps(f'Select {name}')}]')"
            self.until(f"!!{box}")
            self.value(f"{box}.click()")

    def fill(self, selector, text):
        self.value(
            f"(box => {{ box.value = {json.dumps(text)};"
            " for (const kind of ['input', 'change']) box.dispatchEvent(new Event(kind, { bubbles: true })) })"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def problems(self):
        """What axe-core finds in the page, in its light and its dark colours."""
        axe = pytest.importorskip("axe_core_python", reason="axe-core-python needs Python 3.10")
        self.value((files(axe) / "axe.min.js").read_text() + "; null")
        found = []
        for scheme in ("light", "dark"):
            self.page._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            result = self.value("axe.run().then(found => JSON.stringify(found.violations))")
            found += [(scheme, each["id"], [node["html"] for node in each["nodes"]]) for each in json.loads(result)]
        self.page._call("Emulation.setEmulatedMedia", features=[])
        return found

    def click_label(self, text):
        self.value(f"[...document.querySelectorAll('label')].find(each => each.innerText.trim() === {text!r}).click()")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            typed = {"text": "\r", "windowsVirtualKeyCode": 13} if key == "Enter" else {}
            typed = {"windowsVirtualKeyCode": 9} if key == "Tab" else typed
            self.page._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **typed)

    def resize(self, width):
        self.page._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )

    def controls(self):
        """What a screen reader gets of the controls: roles and names."""
        nodes = self.page._call("Accessibility.getFullAXTree")["nodes"]
        found = [(each["role"]["value"], each.get("name", {}).get("value", "")) for each in nodes if "role" in each]
        return [
            each for each in found if each[0] in ("button", "link", "searchbox", "combobox", "checkbox", "img", "log")
        ]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser_page(tmp_path_factory.mktemp("browser"), os.environ) as page:
        yield page


@pytest.fixture(scope="module")
def job(api):
    request = api.request(SCRIPT, name=NAME, AlgorithmSpecification=ALGORITHM)
    request["HyperParameters"]["note"] = json.dumps(HOSTILE)
    api.sagemaker.create_training_job(**request)
    assert api.wait(NAME)["TrainingJobStatus"] == "Completed"
    return NAME


@pytest.fixture(scope="module")
def pair(api):
    """Two jobs with the same metrics, of which only the second has tags."""
    names = ["pair-1", "pair-2"]
    for name, hosts, rate, tags in zip(names, (2, 1), (1, 8), ((), [{"Key": "team", "Value": "vision"}])):
        algorithm = {**ALGORITHM, "MetricDefinitions": EPOCH_METRICS}
        request = api.request(EPOCHS, name=name, AlgorithmSpecification=algorithm, Tags=list(tags))
        request["HyperParameters"].update({"rate": str(rate), "Status": str(hosts)})
        request["ResourceConfig"]["InstanceCount"] = hosts
        api.sagemaker.create_training_job(**request)
    for name in names:
        assert api.wait(name)["TrainingJobStatus"] == "Completed"
    return names


@pytest.fixture(scope="module")
def tuning(api):
    """A tuning job with three training jobs, the second of which is the best."""
    training = api.request(EPOCHS)
    api.names.pop()
    definition = {key: training[key] for key in ("RoleArn", "OutputDataConfig", "StoppingCondition", "ResourceConfig")}
    api.sagemaker.create_hyper_parameter_tuning_job(
        HyperParameterTuningJobName="page-tuning",
        HyperParameterTuningJobConfig={
            "Strategy": "Grid",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "rate", "Values": ["4", "1", "8"]}]},
        },
        TrainingJobDefinition={
            **definition,
            "AlgorithmSpecification": {**ALGORITHM, "MetricDefinitions": EPOCH_METRICS},
            "StaticHyperParameters": training["HyperParameters"],
        },
    )

    def described():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="page-tuning")
        return found["HyperParameterTuningJobStatus"] == "Completed" and found

    return until(described)


@pytest.fixture
def browser(api, job, chromium):
    return Browser(chromium, api.server.url)


@pytest.mark.slow
def test_a_job_has_its_status_phases_metrics_and_log(browser):
    browser.open()
    browser.click(NAME)
    browser.until_shown("loss=0.200")
    assert browser.value("document.title") == f"Completed: {NAME}"
    assert browser.value("location.hash") == f"#job={NAME}"
    assert browser.value("document.querySelector('.badge').innerText") == "Completed"
    phases = browser.value("[...document.querySelectorAll('.phases li')].map(each => each.firstChild.textContent)")
    assert phases == ["Pending", "Starting", "Downloading", "Training", "Uploading"]
    assert browser.value("document.querySelectorAll('.bar span').length") == len(phases)
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 1")
    label = browser.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert "6 values from 0.2 to 1, the last 0.2" in label


BACK = "\b" * 70
#: Progress bars as Keras 2 and Keras 3 write them, one that ends with backspaces, and one of 3 MB.
BARS = f"""
import sys
out = sys.stdout
for number in range(1, 61):
    out.write(f"\\r{{number:2}}/60 [==>...] - ETA: 9s - loss: {{1 / number:.4f}} - mae: 3.0000{BACK}")
out.write("\\r60/60 [======] - 4s 4ms/step - loss: 0.0167 - mae: 2.0000\\nEpoch 2/2\\n")
for number in range(1, 20_000):
    out.write(f"\\r\\033[1m{{number % 60}}/60\\033[0m \\033[32m━━\\033[37m━━━━\\033[0m 9s - loss: 9.0{BACK}")
out.write("\\r\\033[1m60/60\\033[0m \\033[32m━━━━━━\\033[37m\\033[0m \\033[1m4s\\033[0m 4ms/step - loss: 0.0150 - mae: 1.0\\r\\n")
"""


@pytest.mark.slow
def test_a_progress_bar_is_shown_as_it_ended_and_its_metrics_have_a_point_for_each_epoch(api, browser):
    definitions = [{"Name": name, "Regex": regex} for name, regex in PRESETS["keras"]]
    request = api.request(BARS, name="page-bars-1", AlgorithmSpecification={**ALGORITHM, "MetricDefinitions": definitions})  # fmt: skip
    api.sagemaker.create_training_job(**request)
    api.wait("page-bars-1")
    browser.open("#job=page-bars-1")
    browser.until_shown("loss: 0.0150")
    lines = browser.value("[...document.querySelectorAll('.log > div')].map(each => each.textContent)")
    assert [line for line in lines if "/" in line and "scriptmode" not in line] == [
        "60/60 [======] - 4s 4ms/step - loss: 0.0167 - mae: 2.0000",
        "Epoch 2/2",
        "60/60 ━━━━━━ 4s 4ms/step - loss: 0.0150 - mae: 1.0",
    ]
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 2")
    assert browser.value("document.querySelectorAll('[aria-labelledby=metrics-title] .plot').length") == 2
    label = browser.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert "2 values from 0.015 to 0.0167, the last 0.015" in label
    # The search finds what is shown: coloured text, and nothing that the bar overwrote.
    for text, note in (("60/60 ━━", "1 line"), ("59/60", "0 lines")):
        browser.fill("[aria-label='Search the log']", text)
        browser.until(f"document.querySelector('.tools [role=status]').innerText === '{note}'")


@pytest.mark.slow
def test_what_a_job_wrote_is_text(browser):
    browser.open(f"#job={NAME}")
    browser.until_shown("loss=0.200")
    browser.until("(document.querySelector('details') || {}).open === false")
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.querySelector('.log').innerText").count(HOSTILE) == 1
    assert HOSTILE in browser.value("document.querySelector('.pairs').innerText")
    browser.until(f"(document.querySelector('figcaption') || {{}}).innerText.includes({json.dumps(HOSTILE)})")
    assert browser.value("document.querySelectorAll('#content script, #content img').length") == 0
    assert browser.value("window.hacked") is None


@pytest.mark.slow
def test_a_job_is_stopped_and_started_again(api, browser):
    name = api.start("import time; print('begun'); time.sleep(600)", name="page-stopped-1")
    browser.open(f"#job={name}")
    browser.until_shown("begun")
    browser.click("Stop")
    browser.until("document.getElementById('confirm').open")
    browser.click("Cancel", "#confirm")
    assert not browser.value("document.getElementById('confirm').open")
    browser.click("Stop")
    browser.click("Stop job", "#confirm")
    assert api.wait(name)["TrainingJobStatus"] == "Stopped"
    browser.until_shown("Stopped")
    browser.click("Rerun")
    again = browser.until(f"location.hash !== '#job={name}' && new URLSearchParams(location.hash.slice(1)).get('job')")
    api.names.append(again)
    found = api.sagemaker.describe_training_job(TrainingJobName=again)
    before = api.sagemaker.describe_training_job(TrainingJobName=name)
    for field in ("ResourceConfig", "AlgorithmSpecification", "RoleArn"):
        assert found[field] == before[field]


@pytest.mark.slow
def test_the_list_has_hosts_tags_and_the_last_value_of_a_metric(api, browser, pair):
    browser.open("#filter=pair-&metric=loss")
    browser.until_shown("team: ")
    browser.until("document.querySelectorAll('td[data-title=loss]').length === 2")
    second, first = browser.rows()
    assert (first["Name"], first["Hosts"], first["loss"], first["Tags"]) == ("pair-1", TWO_HOSTS, "0.25", "")
    assert (second["Hosts"], second["loss"]) == (ONE_HOST, "2")
    assert second["Tags"] == "team: vision"
    assert second["Duration"].endswith(" s")
    browser.fill(".tools label select", "accuracy")
    browser.until("document.querySelector('td[data-title=accuracy]')?.innerText === '0.5'")
    assert "metric=accuracy" in browser.value("location.hash")
    arn = api.sagemaker.describe_training_job(TrainingJobName="pair-1")["TrainingJobArn"]
    api.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "kept", "Value": ""}])
    until(lambda: [row["Tags"] for row in browser.rows()] == ["team: vision", "kept"], SECONDS)


@pytest.mark.slow
def test_heads_sort_the_list_and_the_address_keeps_order_and_filter(browser, pair):
    browser.open("#filter=pair-")
    browser.until_shown("pair-1")
    assert browser.names() == ["pair-2", "pair-1"]
    browser.value("document.querySelector('thead button').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('thead th[aria-sort=ascending]')?.innerText === 'Name'")
    assert browser.names() == ["pair-1", "pair-2"]
    browser.click("Hosts")
    assert browser.value("document.querySelectorAll('th[aria-sort]').length") == 1
    address = browser.value("location.hash")
    browser.click("pair-2")
    browser.until("document.title === 'Completed: pair-2'")
    browser.value("history.back()")
    browser.until_shown("pair-1")
    assert browser.value("location.hash") == address == "#filter=pair-&sort=Hosts"
    browser.open(address)
    browser.until("document.querySelector('th[aria-sort]')?.innerText === 'Hosts'")
    assert browser.names() == ["pair-2", "pair-1"]


@pytest.mark.slow
def test_the_list_is_filtered_by_name_type_tag_and_status(browser, pair):
    browser.open("#filter=page-test&status=Completed")
    browser.until_shown(NAME)
    assert browser.value("document.querySelector('input[type=search]').value") == "page-test"
    assert browser.value("document.querySelector('.tools select').value") == "Completed"
    browser.fill("input[type=search]", "other")
    browser.until_shown("No job matches the filter.")
    assert browser.value("location.hash") == "#filter=other&status=Completed"
    browser.fill("input[type=search]", "TEAM=vis M5")
    browser.until_shown("pair-2")
    assert browser.names() == ["pair-2"]
    browser.fill("input[type=search]", "rate=1 pair")
    browser.until_shown("pair-1")
    assert browser.names() == ["pair-1"]
    browser.fill(".tools select", "Failed")
    browser.until_shown("No job matches the filter.")


@pytest.mark.slow
def test_selected_jobs_are_stopped_and_deleted_after_one_confirmation(api, browser):
    names = [api.start("import time; time.sleep(600)", name=f"bulk-{each}") for each in (1, 2)]
    ended = api.start("print(1)", name="bulk-3")
    api.wait(ended)
    browser.open("#filter=bulk-")
    browser.select(*names, ended)
    assert browser.value("location.hash") == f"#filter=bulk-&selected={names[0]}%2C{names[1]}%2C{ended}"
    browser.click("Stop")
    browser.until("document.getElementById('confirm').open")
    shown = browser.value("[...document.querySelectorAll('#confirm li')].map(each => each.innerText)")
    assert shown == names
    assert "1 other selected job ended already." in browser.value("document.getElementById('confirm').innerText")
    browser.click("Stop 2 training jobs", "#confirm")
    assert [api.wait(name)["TrainingJobStatus"] for name in names] == ["Stopped", "Stopped"]
    browser.until("[...document.querySelectorAll('.badge')].every(each => each.innerText !== 'Stopping')")
    browser.click("Delete")
    browser.click("Delete 3 training jobs", "#confirm")
    browser.until_shown("No job matches the filter.")
    assert browser.value("document.activeElement.tagName") == "H1"
    assert api.sagemaker.list_training_jobs(NameContains="bulk-")["TrainingJobSummaries"] == []
    assert browser.value("location.hash") == "#filter=bulk-"
    for name in (*names, ended):
        api.names.remove(name)


@pytest.mark.slow
def test_selected_jobs_are_compared(browser, pair):
    browser.open("#filter=pair-&sort=Name")
    browser.select(*pair)
    browser.click("Compare")
    browser.until("document.querySelectorAll('figure').length === 2")
    # A curve for each host in the colour of its job.
    strokes = browser.value(
        "[...document.querySelectorAll('figure')[0].querySelectorAll('.curve')].map(each => each.style.stroke)"
    )
    assert len(strokes) == 3
    assert strokes[0] == strokes[1] != strokes[2]
    browser.until("document.querySelectorAll('.legend .badge.Completed').length === 2")
    assert browser.value("[...document.querySelectorAll('.legend a')].map(each => each.innerText)") == pair
    table = "Object.fromEntries([...document.querySelectorAll('.plain tbody tr')].map(row => [row.children[0].innerText, [row.children[1].innerText, row.children[2].innerText]]))"
    found = browser.value(table)
    assert found["rate"] == ["1", "8"]
    assert found["Status (Hyperparameters)"] == ["2", "1"]
    assert found["Hosts"] == [TWO_HOSTS, ONE_HOST]
    assert found["Last loss"] == ["0.25", "2"]
    assert "Last accuracy" not in found
    assert "Image" not in found
    browser.click_label("Those that are the same, too")
    assert browser.value(table)["Last accuracy"] == ["0.5", "0.5"]
    assert browser.value(table)["Status (Settings)"] == ["Completed", "Completed"]
    browser.value("history.back()")
    browser.until_shown("2 selected")


@pytest.mark.slow
def test_a_place_of_a_chart_has_the_value_of_each_job_and_the_address_keeps_which_is_large(browser, pair):
    browser.open("#compare=pair-1,pair-2")
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 6")
    chart = "document.querySelector('figure')"
    headline = f"{chart}.querySelector('figcaption span').innerText"
    # The last values; pair-1 has two hosts with the same.
    assert browser.value(headline) == "0.25 to 2"
    browser.value(f"{chart}.querySelector('.plot').focus()")
    browser.press("Home")
    # The values from 8 to 0.25 at the first step.
    browser.until(f"{headline} === '1 · pair-1 algo-1, step 1'")
    shown = browser.value(f"[...{chart}.querySelectorAll('.values div')].map(each => each.innerText)")
    assert shown == ["8 pair-2", "1 pair-1 algo-1", "1 pair-1 algo-2"]
    assert browser.value(f"{chart}.querySelector('.values .near').innerText") == "1 pair-1 algo-1"
    browser.value(f"{chart}.querySelector('button').focus()")
    height = f"{chart}.querySelector('.plot').offsetHeight"
    small = browser.value(height)
    browser.press("Enter")
    assert browser.value("location.hash") == "#compare=pair-1,pair-2&large=loss".replace(",", "%2C")
    browser.open(browser.value("location.hash"))
    browser.until(f"{chart} && {height} > {2 * small}")
    browser.click("loss", "figure")
    assert browser.value(height) == small


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("0.03, 0.98, false, false", [0.2, 0.4, 0.6, 0.8]),
        ("-3, 7, false, false", [-2, 0, 2, 4, 6]),
        ("0, 10, false, false", [0, 2, 4, 6, 8, 10]),
        ("5, 5, false, false", [5]),
        ("0, 3e9, false, true", [0, 2**30, 2**31]),
        ("Math.log10(0.11), Math.log10(2.5), true, false", [0.2, 0.5, 1, 2]),
        ("-6, 3, true, false", [1e-6, 1e-4, 1e-2, 1, 100]),
        ("Math.log10(3), Math.log10(4), true, false", [3, 3.2, 3.4, 3.6, 3.8, 4]),
    ],
)
def test_a_scale_has_round_values(browser, arguments, expected):
    browser.open()
    browser.until_shown(NAME)
    assert browser.value(f"ticks({arguments})") == pytest.approx(expected)


@pytest.mark.slow
def test_curves_have_an_axis_a_scale_and_smoothing_that_the_address_keeps(browser, pair):
    browser.open("#job=pair-2")
    path = "document.querySelector('[aria-labelledby=metrics-title] path.curve')?.getAttribute('d')"
    scale = "[...document.querySelectorAll('[aria-labelledby=metrics-title] figure')].map(each => each.querySelector('figcaption b').innerText + ': ' + each.querySelector(':scope > .scale').innerText.split('\\n').join(' '))"
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 2")
    assert browser.value(scale) == ["loss: 1 step, 4 values 4", "accuracy: 1 epoch, 2 values 2"]
    # The values 8, 4, 4 and 2.
    assert browser.value(path) == "M0.00 6.00L33.33 64.67L66.67 64.67L100.00 94.00"
    browser.fill("#content .end select", "epoch")
    assert browser.value(scale)[0] == "loss: 0.5 epoch, 4 values 2"
    browser.fill("#content .end select", "number")
    assert browser.value(scale)[0] == "loss: 1 4 values 4"
    browser.click_label("Log scale")
    assert browser.value(path) == "M0.00 6.00L33.33 50.00L66.67 50.00L100.00 94.00"
    browser.fill("input[type=range]", "0.5")
    assert browser.value("document.querySelectorAll('path.raw').length") == 2
    assert browser.value("location.hash") == "#job=pair-2&x=number&y=log&smooth=0.5"
    browser.open(browser.value("location.hash"))
    browser.until("document.querySelectorAll('path.raw').length === 2")
    assert browser.value("document.querySelector('input[type=range]').value") == "0.5"


@pytest.mark.slow
def test_the_log_is_searched_and_downloaded(browser, pair, tmp_path):
    browser.page._call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.open("#job=pair-1")
    browser.until_shown("Total: 100%")
    browser.fill("[aria-label='Search the log']", "EPOCH 2/2")
    browser.until_shown("2 lines")
    found = browser.value("document.querySelector('[aria-label=\"Lines found\"]').innerText.split('\\n')")
    assert sorted(found) == ["algo-1  Epoch 2/2", "algo-2  Epoch 2/2"]
    browser.fill("[aria-label='Search the log']", "100%")
    browser.until("document.querySelector('[aria-label=\"Lines found\"]').innerText.includes('Total: 100%')")
    browser.fill("[aria-label='Search the log']", "")
    browser.until("document.querySelector('[role=log]').offsetHeight > 0")
    browser.click("Download")
    until((tmp_path / "pair-1.log").is_file, SECONDS)
    lines = (tmp_path / "pair-1.log").read_text().splitlines()
    assert sum(line == "algo-2  step 4 loss=0.250" for line in lines) == 1
    assert sum(line.startswith("algo-1  ") for line in lines) == len(lines) / 2


@pytest.mark.slow
def test_the_log_of_an_ended_job_is_that_of_the_selected_host(browser, pair):
    browser.open("#job=pair-1")
    browser.until_shown("Total: 100%")
    for _ in range(3):
        browser.value("poll()")
    lines = "document.querySelector('[role=log]').innerText"
    assert "algo-1" in browser.value(lines)
    browser.fill("[aria-label=Host]", "algo-2")
    browser.until(f"{lines}.includes('Epoch 1/2') && !{lines}.includes('algo-')")
    assert browser.value("location.hash") == "#job=pair-1&host=algo-2"


@pytest.mark.slow
def test_hosts_have_their_usage_and_its_curves_are_kept_when_the_job_has_ended(api, browser):
    name = api.start("print('begun', flush=True)\nwhile True: pass", name="busy-1")
    browser.open(f"#job={name}")
    browser.until("/algo-1\\s+\\d\\d+ %\\s+[\\d.]+ MiB/.test(document.querySelector('.plain')?.innerText)")
    titles = "[...document.querySelectorAll('section[aria-labelledby=usage-title] figure:not([hidden]) b')].map(each => each.innerText).join()"
    browser.until(f"{titles} === 'CPU,Memory'")
    api.sagemaker.stop_training_job(TrainingJobName=name)
    browser.until("!document.querySelector('.plain').offsetHeight")
    browser.open(f"#job={name}")
    browser.until(f"{titles} === 'CPU,Memory'")
    shown = browser.value("document.querySelector('section[aria-labelledby=usage-title]').innerText")
    assert re.fullmatch(
        r"Hosts\nCPU\n\d+ %(\n\d+ %){2,}\n.+\ntime\n.+\nMemory\n[\d.]+ MiB\n0 B(\n[\d.]+ MiB)+\n.+\ntime\n.+", shown
    )


#: Writes a value, and another one once a file exists.
GATED = """
import pathlib, time
print("step 1 loss=4", flush=True)
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.1)
print("step 2 loss=1", flush=True)
"""


@pytest.mark.slow
def test_a_job_is_found_by_keys_and_followed_to_its_end_without_loading_the_page_again(api, browser):
    gate = api.folder / "gate"
    browser.open("#filter=live-")
    browser.until_shown("No job matches the filter.")
    browser.value("window.isSame = true")
    algorithm = {**ALGORITHM, "MetricDefinitions": EPOCH_METRICS}
    name = api.start(GATED.format(gate=str(gate)), name="live-1", AlgorithmSpecification=algorithm)
    browser.until_shown(name)
    browser.value("document.querySelector('h1').focus()")
    until(lambda: browser.press("Tab") or browser.value("document.activeElement.innerText") == name, SECONDS)
    browser.press("Enter")
    browser.until(f"document.activeElement.tagName === 'H1' && document.activeElement.innerText === '{name}'")
    label = "document.querySelector('.plot')?.getAttribute('aria-label') || ''"
    browser.until(f"({label}).startsWith('loss: 1 values from 4 to 4,')")
    phases = "[...document.querySelectorAll('.phases li')].map(each => each.innerText.split('\\n').join(' '))"
    before = browser.value(phases)[-1]
    assert re.fullmatch(r"Training [\d.]+ s", before)
    browser.until(f"{phases}.at(-1).startsWith('Training') && {phases}.at(-1) !== '{before}'")
    gate.touch()
    browser.until(f"({label}).startsWith('loss: 2 values from 1 to 4, the last 1.')")
    browser.until("document.querySelector('.log').innerText.includes('step 2 loss=1')")
    browser.until(f"document.title === 'Completed: {name}'")
    shown = browser.value(phases)
    assert [each.split()[0] for each in shown][-4:] == ["Starting", "Downloading", "Training", "Uploading"]
    assert all(re.fullmatch(r"\w+ (< )?[\d.]+ s", each) for each in shown)
    widths = browser.value("[...document.querySelectorAll('.bar span')].map(each => each.offsetWidth)")
    assert len(widths) == len(shown)
    assert min(widths) > 0
    assert browser.value("document.getElementById('announcement').textContent") == f"{name}: Completed"
    assert browser.value("window.isSame")


@pytest.mark.slow
def test_warnings_of_a_job_are_shown(browser):
    browser.open()
    browser.until_shown(NAME)
    browser.value(
        "window.replaced = (target, found) => target === 'GetTrainingJobActivity'"
        " ? { ...found, Events: ['the log is not complete'] } : found;" + REPLACED
    )
    browser.click(NAME)
    browser.until_shown("warning: the log is not complete")


@pytest.mark.slow
def test_a_job_that_waits_has_its_position_and_its_region(tmp_path, chromium):
    with serving(tmp_path, "--s3", "memory", "--queue", "1") as api:
        for _ in range(2):
            name = api.start("import time; time.sleep(600)")
        browser = Browser(chromium, api.server.url)
        browser.open(f"#job={name}")
        browser.until("document.querySelector('.badge').innerText === 'Waits (1)'")
        assert "Region\nus-east-1" in browser.value("document.querySelector('.facts').innerText")


@pytest.mark.slow
def test_a_tuning_job_has_its_training_jobs_and_the_best_of_them(browser, tuning):
    browser.open()
    browser.click("Tuning", "header")
    browser.click("page-tuning")
    browser.until_shown("(best)")
    rows = browser.rows()
    assert sorted((row["rate"], row["loss"]) for row in rows) == [("1", "0.25 (best)"), ("4", "1"), ("8", "2")]
    assert browser.value("document.querySelector('dd a').innerText") == tuning["BestTrainingJob"]["TrainingJobName"]
    assert browser.value("document.querySelectorAll('path.curve').length") == 2
    browser.click("loss", ".list")
    assert [row["loss"] for row in browser.rows()] == ["0.25 (best)", "1", "2"]
    browser.select(*(row["Name"] for row in rows[:2]))
    browser.click("Compare")
    browser.until("document.querySelectorAll('figure').length === 2")


@pytest.fixture(scope="module")
def tuning_of_two_definitions(api, tuning):
    """A tuning job with two definitions, of which each has its own hyperparameter."""
    training = {**tuning["TrainingJobDefinition"], "TuningObjective": {"Type": "Minimize", "MetricName": "loss"}}
    definitions = [
        {
            **{key: each for key, each in training.items() if key != "StaticHyperParameters"},
            "StaticHyperParameters": {**training["StaticHyperParameters"]},
            "DefinitionName": name,
            "HyperParameterRanges": {"CategoricalParameterRanges": [{"Name": name, "Values": ["1", "2"]}]},
        }
        for name in ("rate", "units")
    ]
    for each in definitions:
        each["StaticHyperParameters"].pop("_tuning_objective_metric", None)
    name = {"HyperParameterTuningJobName": "page-definitions"}
    api.sagemaker.create_hyper_parameter_tuning_job(
        **name,
        HyperParameterTuningJobConfig={
            "Strategy": "Random",
            "ResourceLimits": {"MaxParallelTrainingJobs": 1, "MaxNumberOfTrainingJobs": 2},
        },
        TrainingJobDefinitions=definitions,
    )

    def has_ended():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(**name)["HyperParameterTuningJobStatus"]
        return found == "Completed"

    until(has_ended)
    return name["HyperParameterTuningJobName"]


#: Passes each answer of the server to `replaced`, with its operation.
REPLACED = """
window.real = fetch;
window.fetch = async (url, options) => {
  const answer = await real(url, options), target = options.headers["X-Amz-Target"].split(".")[1];
  return new Response(JSON.stringify(replaced(target, await answer.json().catch(() => ({})))), answer);
};
null
"""


@pytest.mark.slow
def test_a_tuning_job_with_definitions_is_shown_and_gets_the_columns_of_later_jobs(browser, tuning_of_two_definitions):
    browser.open("#list=tuning")
    browser.until_shown(tuning_of_two_definitions)
    browser.value(
        "window.most = 1; window.replaced = (target, found) => target.startsWith('ListTrainingJobsFor')"
        " ? { TrainingJobSummaries: found.TrainingJobSummaries.slice(0, most) } : found;" + REPLACED
    )
    browser.click(tuning_of_two_definitions)
    browser.until("document.querySelectorAll('.list tbody tr').length === 1")
    assert not {"rate", "units"} <= browser.rows()[0].keys()
    browser.value("most = 2; poll()")
    browser.until("document.querySelectorAll('.list tbody tr').length === 2")
    assert {"rate", "units", "loss"} <= browser.rows()[0].keys()
    assert browser.value("document.querySelectorAll('.list table').length") == 1
    assert "loss (minimize)" in browser.value("document.querySelector('.facts').innerText")


@pytest.mark.slow
def test_only_a_server_without_an_answer_is_said_not_to_answer(browser):
    browser.open()
    browser.until_shown(NAME)
    browser.value("window.replaced = () => ({});" + REPLACED)
    browser.value("poll()")
    browser.until("!document.getElementById('notice').hidden")
    assert "does not answer" not in browser.value("document.getElementById('notice').innerText")
    browser.value("window.fetch = () => Promise.reject(new TypeError('Failed to fetch')); poll()")
    browser.until_shown("The server does not answer. The page tries again.")


@pytest.mark.slow
def test_typing_a_filter_is_one_request(browser, pair):
    browser.open()
    browser.until_shown(NAME)
    browser.value(
        "window.texts = []; window.real = fetch; window.fetch = (url, options) => {"
        " texts.push(JSON.parse(options.body).Text); return real(url, options); };"
        "const box = document.querySelector('input[type=search]');"
        "for (const letter of 'pair-') { box.value += letter; box.dispatchEvent(new Event('input')); } null"
    )
    browser.until("location.hash === '#filter=pair-'")
    browser.until(f"!document.body.innerText.includes({NAME!r})")
    assert set(browser.value("texts")) == {"pair-"}


@pytest.mark.slow
def test_older_jobs_are_shown_up_to_5000_and_the_address_keeps_their_number(browser):
    browser.open("#most=4850")
    browser.until_shown(NAME)
    browser.value(
        "window.replaced = (target, found) => target === 'ListJobs' ? { ...found, Count: 9999 } : found;" + REPLACED
    )
    browser.value("poll()")
    for most in (4950, 5000):
        browser.until("!document.querySelector('.more').hidden")
        browser.click("Show older jobs")
        assert browser.value("location.hash") == f"#most={most}"
    browser.until("document.querySelector('.more').hidden")
    assert browser.value("document.getElementById('notice').hidden")


@pytest.mark.slow
def test_polls_at_once_write_each_line_of_a_log_once(browser, pair):
    browser.open()
    browser.until_shown(NAME)
    browser.value(
        "addEventListener('hashchange', () => { poll(); poll(); }, { once: true }); location.hash = '#job=pair-1'; null"
    )
    browser.until_shown("Total: 100%")
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 4")
    browser.value("new Promise(end => setTimeout(end, 1000))")
    assert browser.value("document.querySelector('.log').innerText").count("Total: 100%") == 2


@pytest.mark.slow
def test_what_ends_later_leaves_the_page_that_the_user_went_to(api, browser):
    name = api.start("print(1)", name="page-left-1")
    api.wait(name)
    browser.open(f"#job={name}")
    browser.until_shown("Rerun")
    browser.value(
        "window.real = fetch; window.held = new Promise(end => { window.release = end; });"
        "window.fetch = async (url, options) => {"
        " if (/Delete/.test(options.headers['X-Amz-Target'])) await held; return real(url, options); }; null"
    )
    browser.click("Delete")
    browser.click("Delete job", "#confirm")
    browser.value(
        "const box = document.querySelector('[aria-label=\"Search the log\"]'); box.value = 'text';"
        "box.dispatchEvent(new Event('input')); location.hash = '#list=tuning'; null"
    )
    browser.until_shown("Tuning jobs")
    browser.value("release()")
    browser.until("document.getElementById('announcement').innerText.includes('deleted')")
    browser.value("new Promise(end => setTimeout(end, 500))")
    assert browser.value("location.hash") == "#list=tuning"
    api.names.remove(name)


@pytest.mark.slow
def test_steps_are_exact_and_other_numbers_have_four_digits(browser):
    browser.open()
    browser.until_shown(NAME)
    assert browser.value("[12345, 1234567, 0.123456, -3].map(number)") == ["12345", "1234567", "0.1235", "-3"]


@pytest.mark.slow
def test_a_phone_has_room_for_titles_and_for_the_bar_of_selected_jobs(browser, pair):
    browser.resize(360)
    browser.open("#compare=pair-1,pair-2")
    browser.until_shown("rate")
    assert browser.value("document.querySelector('.plain tbody th').offsetWidth") >= 110
    browser.open("#filter=pair-&selected=pair-1,pair-2")
    browser.until_shown("2 selected")
    edge = "document.querySelector('.picked%s').getBoundingClientRect().right"
    assert browser.value(edge % " .end button:last-child") <= browser.value(edge % "")
    browser.resize(1200)


@pytest.mark.slow
def test_a_hidden_tab_asks_nothing_and_one_that_stays_open_does_not_grow(browser, pair):
    browser.open("#filter=pair-")
    browser.until_shown("pair-1")
    browser.value(
        "window.sent = 0; window.real = fetch; window.fetch = (...all) => { sent++; return real(...all); }; null"
    )
    for _ in range(3):
        browser.value("dispatchEvent(new Event('x')); poll()")
    browser.until("sent >= 3")
    elements = browser.value("document.querySelectorAll('*').length")
    for _ in range(20):
        browser.value("poll()")
    assert browser.value("document.querySelectorAll('*').length") == elements
    hide = "Object.defineProperty(document, 'hidden', { value: %s, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))"
    browser.value(hide % "true")
    browser.value("poll()")
    sent = browser.value("new Promise(end => setTimeout(() => { sent = 0; setTimeout(() => end(sent), 6000); }, 500))")
    assert sent == 0
    browser.value(hide % "false")
    browser.until("sent > 0")


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("", NAME),
        (f"#job={NAME}&search=loss", "6 lines"),
        ("#compare=pair-1,pair-2", "rate"),
        ("#list=tuning", "page-tuning"),
        ("#tuning=page-tuning", "best so far"),
    ],
)
def test_axe_finds_nothing_and_phones_have_room(browser, pair, tuning, fragment, shown, width):
    browser.resize(width)
    browser.open(fragment)
    browser.until_shown(shown)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.problems() == []
    browser.resize(1200)


@pytest.mark.slow
def test_a_job_that_does_not_exist_is_said(browser):
    browser.open("#job=no-such-job")
    browser.until_shown("There is no training job with this name.")
    browser.click("Training jobs")
    browser.until_shown(NAME)
    assert browser.value("document.getElementById('notice').hidden")


@pytest.mark.slow
def test_values_of_a_curve_are_read_by_keys(browser):
    browser.open(f"#job={NAME}")
    browser.until("document.querySelectorAll('[aria-labelledby=metrics-title] path.curve').length === 1")
    browser.value("document.querySelector('.plot').focus()")
    browser.press("Home")
    browser.until("document.querySelector('figcaption span').innerText.startsWith('1 ')")
    browser.press("ArrowRight")
    browser.until("document.querySelector('figcaption span').innerText.startsWith('0.5 ')")
    assert browser.value("document.getElementById('announcement').textContent").startswith("0.5 ")


@pytest.mark.slow
@pytest.mark.parametrize("fragment", ["", f"#job={NAME}"])
def test_controls_have_names_and_phones_have_room(browser, fragment):
    browser.resize(360)
    browser.open(fragment)
    browser.until_shown("loss=0.200" if fragment else NAME)
    assert browser.value("document.documentElement.scrollWidth") <= 360
    controls = browser.controls()
    assert {"link"} < {role for role, _ in controls}
    assert [role for role, name in controls if not name] == []
    browser.resize(1200)


@pytest.mark.slow
def test_with_access_keys_the_page_signs_its_requests(tmp_path, chromium):
    key = AccessKeys(tmp_path / "data").create()
    with serving(tmp_path, "--s3", "memory") as api:
        browser = Browser(chromium, api.server.url)
        browser.open()
        for secret, shown in (("wrong", "does not match"), (key.secret, "There are no jobs yet")):
            browser.until("document.getElementById('key').open")
            browser.value(f"document.getElementById('key-id').value = {key.identifier!r}")
            browser.value(f"document.getElementById('key-secret').value = {secret!r}")
            browser.click("Use the key", "#key")
            browser.until_shown(shown)
        assert not browser.value("document.getElementById('key').open")
        browser.open()
        browser.until_shown("There are no jobs yet")
        assert call(api, "SageMaker.ListTrainingJobs", {}) == (403, "MissingAuthenticationTokenException")
        assert call(api, f"{TARGET}.RerunTrainingJob", {}) == (403, "MissingAuthenticationTokenException")


@pytest.mark.slow
def test_pages_of_other_sites_use_none_of_its_operations(api, job):
    for operation in ("RerunTrainingJob", "GetTrainingJobMetrics", "GetTrainingJobActivity"):
        target = f"{TARGET}.{operation}"
        assert call(api, target, {"TrainingJobName": job}, "http://other") == (403, "AccessDeniedException")
        assert call(api, target, {"TrainingJobName": job}, "null") == (403, "AccessDeniedException")
        assert call(api, target, {"TrainingJobName": "no-job"}, api.server.url) == (400, "ValidationException")
    request = urllib.request.Request(api.server.url, headers={"Accept": "text/html", "Origin": "http://other"})
    with pytest.raises(urllib.error.HTTPError, match="403") as raised:
        urllib.request.urlopen(request, timeout=SECONDS)
    raised.value.close()


@pytest.mark.slow
def test_the_page_loads_nothing_from_elsewhere(api):
    request = urllib.request.Request(api.server.url, headers={"Accept": "text/html,*/*;q=0.8"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        policy = answer.headers["Content-Security-Policy"]
        text = answer.read().decode()
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "src=" not in text.partition("<script>")[0]
    assert api.client("s3").list_buckets()["Buckets"] == []


@pytest.mark.slow
def test_a_page_in_s3_does_not_use_the_server(api, job, browser):
    s3 = api.client("s3")
    script = "fetch('/', {method: 'POST'}).catch(each => each).then(() => { document.title = 'used' }); document.title = 'ran'"
    s3.create_bucket(Bucket="pages")
    page = f"<title>kept</title><script>{script}</script>".encode()
    s3.put_object(Bucket="pages", Key="page.html", Body=page, ContentType="text/html", ACL="public-read")
    browser.page.open(f"{browser.url}/pages/page.html")
    browser.until("document.title !== ''")
    assert browser.value("document.title") == "kept"
    assert browser.value("self.origin") == "null"


def call(api, target, content, origin=None):
    headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"}
    if origin:
        headers["Origin"] = origin
    request = urllib.request.Request(api.server.url, json.dumps(content).encode(), headers)
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=SECONDS)
    with raised.value as answer:
        return answer.code, json.loads(answer.read())["__type"]


BROWSER = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_ACCEPT": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("changes", "is_page"),
    [
        ({}, True),
        ({"HTTP_ACCEPT": "*/*"}, False),
        ({"REQUEST_METHOD": "POST"}, False),
        ({"PATH_INFO": "/bucket"}, False),
        ({"HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 Credential=x"}, False),
        ({"QUERY_STRING": "X-Amz-Credential=x"}, False),
    ],
)
def test_other_clients_get_no_page(changes, is_page):
    assert is_for_page({**BROWSER, **changes}) is is_page


class SlowMetrics:
    """A platform with three jobs, of which the newest runs, whose metrics take longer than a request waits for them."""

    def __init__(self):
        self.now = 0.0
        self.read = []

    def list(self):
        statuses = {"new": "InProgress", "middle": "Completed", "old": "Completed"}
        return [
            {"TrainingJobName": name, "TrainingJobArn": name, "CreationTime": name, "TrainingJobStatus": status}
            for name, status in statuses.items()
        ]

    def describe(self, name):
        raise JobNotFoundError(name)

    def metrics(self, name):
        self.now += METRIC_SECONDS + 1
        self.read.append(name)
        return [{"MetricName": "loss", "Value": self.now}]


def test_each_request_reads_some_metrics_and_those_of_ended_jobs_once():
    platform = SlowMetrics()
    rows = JobRows(platform, lambda _: None, platform.metrics, lambda: platform.now)
    unread = [sum(row["Metrics"] is None for row in rows.list_jobs({})["Jobs"]) for _ in range(6)]
    assert platform.read == ["new", "middle", "old", "new", "new", "new"]
    assert unread == [2, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), DataError("regex"), ValueError("empty")])
def test_a_job_whose_metrics_cannot_be_read_is_listed_and_read_again(error):
    platform, found = SlowMetrics(), [error, [{"MetricName": "loss", "Value": 1.0}]]

    def metrics(name):
        each = found.pop(0) if name == "middle" else []
        if isinstance(each, Exception):
            raise each
        return each

    rows = JobRows(platform, lambda _: None, metrics)
    assert [(row["TrainingJobName"], row["Metrics"]) for row in rows.list_jobs({})["Jobs"]] == [
        ("new", {}),
        ("middle", {}),
        ("old", {}),
    ]
    assert rows.list_jobs({})["Jobs"][1]["Metrics"] == {"loss": 1.0}


@pytest.mark.parametrize("content", ["[]", '"x"', "", "{"])
def test_a_job_whose_file_of_tags_is_damaged_is_listed(tmp_path, content):
    (tmp_path / "tags.json").write_text(content)
    platform = SimpleNamespace(
        server_folder=lambda _: tmp_path, tags_of=lambda _: {}, tags=lambda _: {}, arn_of=lambda _: ""
    )
    rows = JobRows(SlowMetrics(), TagOperations(platform, platform).changed_tags, lambda _: [])
    assert [row["Tags"] for row in rows.list_jobs({})["Jobs"]] == [{}, {}, {}]


class SlowSettings(SlowMetrics):
    """The same jobs, all with a tag, whose description takes longer than a request waits for it."""

    fails = False

    def describe(self, name):
        self.now += SETTING_SECONDS + 1
        self.read.append(name)
        if self.fails:
            raise OSError(24, "Too many open files")
        hosts = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}
        job = SimpleNamespace(tags={"team": "vision"})
        return SimpleNamespace(job=job, response={"ResourceConfig": hosts, "TrainingJobName": name})


def test_a_filter_describes_some_jobs_in_each_request_and_none_whose_name_has_the_words():
    platform = SlowSettings()
    rows = JobRows(platform, lambda _: None, lambda _: [], lambda: platform.now)
    answers = [rows.list_jobs({"Text": "vision"}) for _ in range(3)]
    assert platform.read == ["new", "middle", "old"]
    assert [(each["Count"], each["IsComplete"]) for each in answers] == [(1, False), (2, False), (3, True)]
    other = SlowSettings()
    answer = JobRows(other, lambda _: None, lambda _: [], lambda: other.now).list_jobs({"Text": "d", "Most": 2})
    assert [row["TrainingJobName"] for row in answer["Jobs"]] == ["middle", "old"]
    assert "old" not in other.read


def test_hosts_and_tags_that_could_not_be_read_are_read_again():
    platform = SlowSettings()
    rows = JobRows(platform, lambda _: None, lambda _: [])
    platform.fails = True
    assert [row["Hosts"] for row in rows.list_jobs({})["Jobs"]] == [[], [], []]
    platform.fails = False
    assert [row["Tags"] for row in rows.list_jobs({})["Jobs"]] == [{"team": "vision"}] * 3


@pytest.mark.parametrize("most", [0, 5001, "all"])
def test_the_number_of_rows_is_limited(most):
    platform = SlowMetrics()
    with pytest.raises(ApiError, match="from 1 to 5000"):
        JobRows(platform, lambda _: None, platform.metrics).list_jobs({"Most": most})


@given(st.lists(st.floats(width=32), max_size=2000))
def test_a_thinned_curve_keeps_its_extremes_and_its_end(values):
    operations = PageOperations(None, str, lambda _: {"loss": [MetricValue(1.0, value, "algo-1") for value in values]})
    answer = operations.operations["GetTrainingJobMetrics"]({"TrainingJobName": "job"})
    curves = answer["Metrics"][0]["Curves"]
    json.dumps(answer, allow_nan=False)
    if not values:
        assert curves == []
        return
    (curve,) = curves
    shown = [point[2] for point in curve["Points"]]
    finite = [value for value in values if abs(value) < float("inf")]
    assert curve["Count"] == len(values)
    assert len(shown) <= 601
    assert curve["Points"][-1][1] == len(values)
    if finite and len(finite) == len(values):
        assert (min(shown), max(shown)) == (min(values), max(values))
