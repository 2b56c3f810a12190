"""The web page of `scriptmode serve` in a browser, with real jobs, and which requests it is for."""

import json
import os
import urllib.error
import urllib.request

import pytest
from fakes.processes import until
from hypothesis import given
from hypothesis import strategies as st
from notebooks.jupyter_lab import browser_page
from serve.conftest import TENSORFLOW, serving

from scriptmode.core.spec.metric_definitions import PRESETS
from scriptmode.serve.access_keys import AccessKeys
from scriptmode.serve.job_metrics import MetricValue
from scriptmode.serve.page import TARGET, PageOperations, is_for_page

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
SCRIPT = f"""
print({HOSTILE!r})
for step in range(5):
    print(f"loss={{1 / (step + 1):.3f}}")
print("loss=nan")
"""
METRICS = [{"Name": f"loss {HOSTILE}"[:255], "Regex": "loss=([0-9.]+|nan)"}]
ALGORITHM = {"TrainingInputMode": "File", "TrainingImage": TENSORFLOW, "MetricDefinitions": METRICS}
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

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.page._call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

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
    browser.until("document.querySelectorAll('path.curve').length === 1")
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
    browser.until("document.querySelectorAll('path.curve').length === 2")
    assert browser.value("document.querySelectorAll('.plot').length") == 2
    label = browser.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert "2 values from 0.015 to 0.0167, the last 0.015" in label


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
    browser.until("document.getElementById('stop').open")
    browser.click("Cancel", "#stop")
    assert not browser.value("document.getElementById('stop').open")
    browser.click("Stop")
    browser.click("Stop job", "#stop")
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
def test_the_list_is_filtered_by_the_fragment(browser):
    browser.open("#name=page-test&status=Completed")
    browser.until_shown(NAME)
    assert browser.value("document.querySelector('input[type=search]').value") == "page-test"
    assert browser.value("document.querySelector('.tools select').value") == "Completed"
    browser.value(
        "(box => { box.value = 'other'; box.dispatchEvent(new Event('input')) })(document.querySelector('input'))"
    )
    browser.until_shown("No job matches the filter.")
    assert browser.value("location.hash") == "#name=other&status=Completed"


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
    browser.until("document.querySelectorAll('path.curve').length === 1")
    browser.value("document.querySelector('.plot').focus()")
    browser.press("Home")
    browser.until("document.querySelector('figcaption span').innerText.startsWith('1 ')")
    browser.press("ArrowRight")
    browser.until("document.querySelector('figcaption span').innerText.startsWith('0.5 ')")
    assert browser.value("document.getElementById('said').textContent").startswith("0.5 ")


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
    for operation in ("RerunTrainingJob", "GetTrainingJobMetrics"):
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


@given(st.lists(st.floats(width=32), max_size=2000))
def test_a_thinned_curve_keeps_its_extremes_and_its_end(values):
    operations = PageOperations(str, lambda _: {"loss": [MetricValue(1.0, value, "algo-1") for value in values]})
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
