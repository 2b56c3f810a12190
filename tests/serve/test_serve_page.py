"""The web page of `scriptmode serve` in a browser, with real jobs, and which requests it is for."""

import json
import os
import re
import urllib.error
import urllib.request
from importlib.resources import files

import pytest
from fakes.processes import until
from hypothesis import given, strategies as st
from notebooks.jupyter_lab import browser_page
from serve.conftest import TENSORFLOW, serving
from serve.test_serve_tuning import results, tuning_request

from scriptmode._core.spec.metric_definitions import PRESETS
from scriptmode_serve._http.access_keys import AccessKeys
from scriptmode_serve._http.page import TARGET, is_for_page, page_operations
from scriptmode_serve._operations.job_metrics import MetricValue

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
EPOCH_METRICS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}, {"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"}]
ALGORITHM = {"TrainingInputMode": "File", "TrainingImage": TENSORFLOW, "MetricDefinitions": METRICS}
#: Passes each answer of the server to `replaced`, with its operation.
REPLACED = """
window.real = fetch;
window.fetch = async (url, options) => {
  const answer = await real(url, options), target = options.headers["X-Amz-Target"].split(".")[1];
  return new Response(JSON.stringify(replaced(target, await answer.json().catch(() => ({})))), answer);
};
null
"""
#: Records the operation of each request.
SENT = "window.sent = []; window.replaced = (target, answer) => { sent.push(target); return answer; };"
NAME = "page-test-1"
SECONDS = 60


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

    def texts(self, selector):
        return self.value(f"[...document.querySelectorAll({selector!r})].map(each => each.innerText)")

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

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            typed = {"text": "\r", "windowsVirtualKeyCode": 13} if key == "Enter" else {}
            typed = {"windowsVirtualKeyCode": 9} if key == "Tab" else typed
            self.page._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **typed)

    def point(self, selector, x, y):
        self.value(
            "(plot => { const box = plot.getBoundingClientRect(); plot.dispatchEvent(new PointerEvent('pointermove',"
            f" {{ clientX: box.left + {x}, clientY: box.top + {y} }})) }})(document.querySelector({selector!r}))"
        )

    def resize(self, width):
        self.page._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )


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
    """Two jobs with the same metrics, the first on two hosts."""
    names = ["pair-1", "pair-2"]
    for name, hosts, rate in zip(names, (2, 1), (1, 8)):
        algorithm = {**ALGORITHM, "MetricDefinitions": EPOCH_METRICS}
        request = api.request(EPOCHS, name=name, AlgorithmSpecification=algorithm)
        request["HyperParameters"]["rate"] = str(rate)
        request["ResourceConfig"]["InstanceCount"] = hosts
        api.sagemaker.create_training_job(**request)
    for name in names:
        assert api.wait(name)["TrainingJobStatus"] == "Completed"
    return names


@pytest.fixture(scope="module")
def tuned(api):
    api.client("s3").list_buckets()
    api.sagemaker.create_hyper_parameter_tuning_job(**tuning_request(api, "page-tuning"))
    results(api, "page-tuning")
    return "page-tuning"


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
    browser.until("document.querySelectorAll('[aria-label=Metrics] path.curve').length === 1")
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
    browser.until("document.querySelectorAll('[aria-label=Metrics] path.curve').length === 2")
    assert browser.value("document.querySelectorAll('[aria-label=Metrics] .plot').length") == 2
    label = browser.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert "2 values from 0.015 to 0.0167, the last 0.015" in label


@pytest.mark.slow
def test_what_a_job_wrote_is_text(browser):
    browser.open(f"#job={NAME}")
    browser.until_shown("loss=0.200")
    assert browser.value("document.querySelector('.log').innerText").count(HOSTILE) == 1
    browser.until(f"document.querySelector('[aria-label=Settings]').innerText.includes({json.dumps(HOSTILE)})")
    browser.until(f"(document.querySelector('figcaption') || {{}}).innerText.includes({json.dumps(HOSTILE)})")
    assert browser.value("document.querySelectorAll('#content script, #content img').length") == 0
    assert browser.value("window.hacked") is None


@pytest.mark.slow
def test_the_list_is_filtered_by_name_and_status_and_the_address_keeps_both(browser, pair):
    browser.open("#filter=page-test&status=Completed")
    browser.until_shown(NAME)
    assert browser.value("document.querySelector('input[type=search]').value") == "page-test"
    assert browser.value("document.querySelector('[aria-label=Status]').value") == "Completed"
    browser.fill("input[type=search]", "other")
    browser.until_shown("No job matches the filter.")
    assert browser.value("location.hash") == "#filter=other&status=Completed"
    browser.fill("input[type=search]", "PAIR-")
    browser.until_shown("pair-2")
    assert browser.texts(".list .name") == ["pair-2", "pair-1"]
    browser.click("pair-2")
    browser.until("document.title === 'Completed: pair-2'")
    browser.click("Training jobs")
    browser.until_shown("pair-1")
    assert browser.value("location.hash") == "#filter=PAIR-&status=Completed"
    browser.fill("[aria-label=Status]", "Failed")
    browser.until_shown("No job matches the filter.")


@pytest.mark.slow
def test_older_jobs_are_shown_on_request(browser):
    browser.open()
    browser.until_shown(NAME)
    browser.value(
        "const row = { CreationTime: 1, TrainingEndTime: 2, TrainingJobStatus: 'Completed' };"
        "window.fetch = async () => new Response(JSON.stringify({ NextToken: 'next', TrainingJobSummaries:"
        " [...Array(100).keys()].map(each => ({ ...row, TrainingJobName: `job-${each}` })) })); poll()"
    )
    for count in (100, 200):
        browser.until(f"document.querySelectorAll('.list tbody tr').length === {count}")
        browser.click("Show older jobs")


@pytest.mark.slow
def test_the_x_axis_is_what_the_log_names_and_each_host_has_a_curve(browser, pair):
    browser.open("#job=pair-2")
    browser.until("document.querySelectorAll('[aria-label=Metrics] path.curve').length === 2")
    axis = "[...document.querySelectorAll('figure')].map(each => [...each.querySelectorAll('text:not(.y)')].map(mark => mark.textContent).join(' '))"
    assert browser.value(axis) == ["1 2 3 4 step, 4 values", "1 2 epoch, 2 values"]
    # The values 8, 4, 4 and 2.
    first, *equal, last = browser.value(
        "document.querySelector('path.curve').getAttribute('d').match(/[\\d.]+(?=[ML]|$)/g)"
    )
    assert float(first) < float(equal[0]) == float(equal[1]) < float(last)
    assert browser.value("[[0.03, 0.98], [-3, 7], [5, 5], [0.002, 700, true], [0.02, 0.7, true]].map(each => ticks(...each))") == [
        pytest.approx([0.2, 0.4, 0.6, 0.8]), pytest.approx([-2, 0, 2, 4, 6]), [5],
        pytest.approx([0.01, 0.1, 1, 10, 100]), pytest.approx([0.02, 0.05, 0.1, 0.2, 0.5]),
    ]  # fmt: skip
    assert browser.value("[3600, 3661, 86460].map(duration)") == ["1 h", "1 h 1 min", "1 d"]
    assert browser.value("[12345, 1234567, 0.123456, -3].map(number)") == ["12345", "1234567", "0.1235", "-3"]
    browser.open("#job=pair-1")
    browser.until("document.querySelectorAll('[aria-label=Metrics] path.curve').length === 4")
    assert browser.value("document.querySelector('.hosts').innerText.split('\\n')") == ["algo-1", "algo-2"]


@pytest.mark.slow
def test_one_outlier_flattens_no_chart_and_the_log_scale_is_kept_in_the_address(browser):
    browser.open(f"#job={NAME}")
    browser.until("document.querySelectorAll('path.curve').length === 1")
    assert browser.value("withoutOutliers([...Array(20).keys(), 9000])") == list(range(20))
    browser.point(".plot", 54, 0)
    assert browser.value("document.querySelector('figcaption span').innerText") == "1, value 1"
    browser.value("document.querySelector('[aria-label=Metrics] input').click()")
    assert browser.value("location.hash") == f"#job={NAME}&y=log"
    # The values are 1, 1/2 and 1/4, at equal distances.
    ys = browser.value("document.querySelector('path.curve').getAttribute('d').match(/[\\d.]+(?=[ML]|$)/g)")
    assert float(ys[1]) - float(ys[0]) == pytest.approx(float(ys[3]) - float(ys[1]), abs=0.5)


@pytest.mark.slow
def test_the_log_of_an_ended_job_is_that_of_the_selected_host(browser, pair):
    browser.open("#job=pair-1")
    browser.until_shown("Total: 100%")
    browser.value(SENT + REPLACED)
    # Nothing else is asked once all is known.
    browser.until("(sent = [], poll().then(() => sent.join() === 'DescribeTrainingJob'))")
    lines = "document.querySelector('[role=log]').innerText"
    assert "algo-1" in browser.value(lines)
    browser.fill("[aria-label=Host]", "algo-2")
    browser.until(f"{lines}.includes('Epoch 1/2') && !{lines}.includes('algo-')")
    assert browser.value("location.hash") == "#job=pair-1&host=algo-2"


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
    browser.until(f"({label}).startsWith('loss: 1 value from 4 to 4,')")
    phases = "[...document.querySelectorAll('.phases li')].map(each => each.innerText.split('\\n').join(' '))"
    before = browser.value(phases)[-1]
    browser.value("[...document.querySelectorAll('dd button')].find(button => button.innerText === 'Copy').focus()")
    assert re.fullmatch(r"Training [\d.]+ s", before)
    browser.until(f"{phases}.at(-1).startsWith('Training') && {phases}.at(-1) !== '{before}'")
    assert browser.value("document.activeElement.innerText") == "Copy"
    gate.touch()
    browser.until(f"({label}).startsWith('loss: 2 values from 1 to 4, the last 1')")
    browser.until("document.querySelector('.log').innerText.includes('step 2 loss=1')")
    browser.until(f"document.title === 'Completed: {name}'")
    shown = browser.value(phases)
    assert [each.split()[0] for each in shown][-4:] == ["Starting", "Downloading", "Training", "Uploading"]
    assert all(re.fullmatch(r"\w+ (< )?[\d.]+ s", each) for each in shown)
    assert browser.value("document.getElementById('announcement').textContent") == f"{name}: Completed"
    assert browser.value("window.isSame")


@pytest.mark.slow
def test_a_job_that_waits_has_its_position(tmp_path, chromium):
    with serving(tmp_path, "--s3", "memory", "--queue", "1") as api:
        for _ in range(2):
            name = api.start("import time; time.sleep(600)")
        browser = Browser(chromium, api.server.url)
        browser.open(f"#job={name}")
        browser.until("document.querySelector('.badge').innerText === 'Pending'")
        browser.until_shown("(position 1)")
        (tmp_path / "data" / "jobs" / name / "places.json").write_text(
            '{"algo-1": "Slurm job 7, partition gpu, node1"}'
        )
        browser.until_shown("Places\nalgo-1: Slurm job 7, partition gpu, node1")
        assert "Region" not in browser.value("document.querySelector('.facts').innerText")


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
        " texts.push(JSON.parse(options.body).NameContains); return real(url, options); };"
        "const box = document.querySelector('input[type=search]');"
        "for (const letter of 'pair-') { box.value += letter; box.dispatchEvent(new Event('input')); } null"
    )
    browser.until("location.hash === '#filter=pair-'")
    browser.until(f"!document.body.innerText.includes({NAME!r})")
    assert set(browser.value("texts")) == {"pair-"}


@pytest.mark.slow
def test_polls_at_once_write_each_line_of_a_log_once(browser, pair):
    browser.open()
    browser.until_shown(NAME)
    browser.value(
        "addEventListener('hashchange', () => { poll(); poll(); }, { once: true }); location.hash = '#job=pair-1'; null"
    )
    browser.until_shown("Total: 100%")
    browser.until("document.querySelectorAll('[aria-label=Metrics] path.curve').length === 4")
    browser.value("new Promise(end => setTimeout(end, 1000))")
    assert browser.value("document.querySelector('.log').innerText").count("Total: 100%") == 2


@pytest.mark.slow
def test_a_hidden_tab_asks_nothing_and_one_that_stays_open_does_not_grow(browser, pair):
    browser.open("#filter=pair-")
    browser.until_shown("pair-1")
    browser.value(SENT + REPLACED)
    for _ in range(3):
        browser.value("dispatchEvent(new Event('x')); poll()")
    browser.until("sent.length >= 3")
    elements = browser.value("document.querySelectorAll('*').length")
    for _ in range(20):
        browser.value("poll()")
    assert browser.value("document.querySelectorAll('*').length") == elements
    hide = "Object.defineProperty(document, 'hidden', { value: %s, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))"
    browser.value(hide % "true")
    browser.value("poll()")
    sent = browser.value("new Promise(end => setTimeout(() => { sent = []; setTimeout(() => end(sent), 6000); }, 500))")
    assert sent == []
    browser.value(hide % "false")
    browser.until("sent.length > 0")


@pytest.mark.slow
def test_jobs_are_selected_and_compared_with_the_best_of_each_metric(browser, pair):
    browser.open("#filter=pair-")
    browser.until_shown("pair-1")
    browser.value("document.querySelectorAll('.list input').forEach(box => box.click())")
    browser.click("Compare")
    rows = "Object.fromEntries([...document.querySelectorAll('.list tbody tr')].map(row => [row.cells[0].innerText, [...row.cells].slice(1).map(cell => cell.innerText)]))"
    browser.until(f"({rows}).rate")
    shown = browser.value(rows)
    assert browser.texts(".list th a") == pair[::-1]
    assert shown["rate"] == ["8", "1"]
    assert shown["loss"] == ["2\nmin 2\nmax 8", "0.25\nmin 0.25\nmax 1"]
    assert browser.texts(".best") == ["min 0.25", "max 0.5", "max 0.5"]
    assert browser.value("document.querySelectorAll('path.curve').length") == 6


@pytest.mark.slow
def test_a_tuning_job_has_its_objective_over_jobs_and_ranges_and_its_best_so_far(api, browser, tuned):
    browser.open("#list=tuning")
    browser.until_shown(tuned)
    assert "Grid\t0\t" in browser.value("document.querySelector('.list tbody tr').innerText")
    browser.click(tuned)
    browser.until("document.querySelectorAll('.list tbody tr').length === 3")
    assert browser.texts("figcaption b") == ["loss", "rate"]
    facts = browser.texts(".facts div")
    assert "Range of rate\n0.25, 0.75, 0.5" in facts
    assert "Training jobs\n3, 3 completed" in facts
    columns = [list(map(float, row.split("\t")[2:5])) for row in browser.texts(".list tbody tr")]
    assert columns == [[0.25, 0.25, 0.25], [0.25, 0.25, 0.75], [0, 0, 0.5]]
    assert browser.texts(".best") == ["0"]
    assert browser.value("document.querySelectorAll('.dots').length") == 2


#: Ranges of each kind in place of the tuning job's, and values for its three training jobs; the last has no objective.
RANGES = """
const values = [["1e-5", "adam"], ["1e-3", "sgd"], ["1e-1", "adam"]], final = "FinalHyperParameterTuningJobObjectiveMetric";
window.replaced = (target, answer) => {
  if (target.startsWith("Describe")) answer.HyperParameterTuningJobConfig.ParameterRanges = {
    ContinuousParameterRanges: [{ Name: "rate", MinValue: "1e-5", MaxValue: "0.1", ScalingType: "Logarithmic" }],
    CategoricalParameterRanges: [{ Name: "optimizer", Values: ["adam", "sgd"] }] };
  if (answer.BestTrainingJob) answer = { ...answer, FailureReason: "broken", BestTrainingJob: { TrainingJobName: "trial-2" } };
  answer.TrainingJobSummaries?.forEach((trial, index) => Object.assign(trial, { TrainingJobName: `trial-${index + 1}`,
    TunedHyperParameters: { rate: values[index][0], optimizer: values[index][1] },
    [final]: index < 2 ? { ...trial[final], Value: 2 - index } : undefined }));
  return answer;
};
"""


@pytest.mark.slow
def test_parallel_coordinates_have_a_line_for_each_trial_and_mark_the_best(browser, tuned):
    browser.open("#list=tuning")
    browser.until_shown(tuned)
    browser.value(RANGES + REPLACED)
    browser.click(tuned)
    browser.until("document.querySelectorAll('.parallel .curve').length === 2")
    heights = "[...document.querySelectorAll('.parallel %s')].map(path => path.getAttribute('d').split('L').map(place => +place.split(' ')[1]))"
    # On the logarithmic axis 1e-3 is in the middle of 1e-5 and 0.1; categories are points; the objective is the last.
    assert browser.value(heights % ".curve") == [[214, 169, 34], [124, 79, 214]]
    assert browser.value(heights % ".marked") == [[124, 79, 214]]
    texts = browser.value("[...document.querySelectorAll('.parallel text')].map(text => text.textContent)")
    assert texts[:9] == ["rate", "0.00001", "0.0001", "0.001", "0.01", "0.1", "optimizer", "adam", "sgd"]
    shown = "document.querySelector('.whole p').innerText"
    assert browser.value(shown) == "best: trial-2, rate 0.001, optimizer sgd, loss 1; 1 without a value"
    assert browser.texts("#content .reason") == ["broken"]
    browser.point(".parallel", 70, 210)
    browser.value("document.querySelector('[aria-label=Objective] input').click()")
    assert browser.value(shown).startswith("trial-1, rate 1.00e-5, optimizer adam, ")


@pytest.mark.slow
def test_a_job_has_its_source_its_tags_and_its_colours(api, browser):
    name, s3 = "page-source-1", api.client("s3")
    script = r"print('\033[1;31mred\033[0m plain')"
    request = api.request(script, name=name, Tags=[{"Key": "owner", "Value": "page"}])
    s3.create_bucket(Bucket="sources")
    s3.upload_file(str(api.folder / f"{name}.tar.gz"), "sources", "a b/source.tar.gz")
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps("s3://sources/a b/source.tar.gz")
    api.sagemaker.create_training_job(**request)
    api.wait(name)
    browser.open(f"#job={name}")
    browser.until_shown("red plain")
    assert browser.texts(".log span[style]") == ["red"]
    size = "fetch(document.querySelector('a[download]').href).then(answer => answer.blob()).then(blob => blob.size)"
    assert browser.value(size) == (api.folder / f"{name}.tar.gz").stat().st_size
    browser.value("navigator.clipboard.writeText = async text => { window.copied = text }; null")
    browser.click("Copy")
    assert browser.value("copied") == "s3://sources/a b/source.tar.gz"
    browser.click("owner=page")
    browser.until(f"[...document.querySelectorAll('.list .name')].map(cell => cell.innerText).join() === '{name}'")


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("", NAME), (f"#job={NAME}", "loss=0.200"), ("#job=pair-1", "Total: 100%"),
        ("#compare=pair-1,pair-2", "max 8"), ("#tuning=page-tuning", "Best so far"),
    ],
)  # fmt: skip
def test_axe_finds_nothing_and_phones_have_room(browser, pair, tuned, fragment, shown, width):
    browser.resize(width)
    browser.open(fragment)
    browser.until_shown(shown)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.problems() == []
    browser.resize(1200)


@pytest.mark.slow
def test_a_job_that_does_not_exist_is_said(browser):
    browser.open("#job=no-such-job")
    browser.until_shown("There is no training job named ")
    browser.click("Training jobs")
    browser.until_shown(NAME)
    assert browser.value("document.getElementById('notice').hidden")


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
        assert call(api, f"{TARGET}.GetTrainingJobMetrics", {}) == (403, "MissingAuthenticationTokenException")


@pytest.mark.slow
def test_pages_of_other_sites_use_none_of_its_operations(api, job):
    target = f"{TARGET}.GetTrainingJobMetrics"
    for origin in ("http://other", "null"):
        assert call(api, target, {"TrainingJobName": job}, origin) == (403, "AccessDeniedException")
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
        ({}, True), ({"HTTP_ACCEPT": "*/*"}, False), ({"REQUEST_METHOD": "POST"}, False),
        ({"PATH_INFO": "/bucket"}, False), ({"HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 Credential=x"}, False),
        ({"QUERY_STRING": "X-Amz-Credential=x"}, False),
    ],
)  # fmt: skip
def test_other_clients_get_no_page(changes, is_page):
    assert is_for_page({**BROWSER, **changes}) is is_page


@given(st.lists(st.floats(width=32), max_size=2000))
def test_a_thinned_curve_keeps_its_extremes_and_its_end(values):
    operations = page_operations(lambda _: {"loss": [MetricValue(1.0, value, "algo-1") for value in values]}, dict)
    answer = operations["GetTrainingJobMetrics"]({"TrainingJobName": "job"})
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
