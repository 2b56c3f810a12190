"""The card of a job as a real browser lays it out: narrow and wide, on light pages and dark ones."""

import html
import json
import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from scriptmode.display import html_card
from scriptmode.display.collector import Collector
from scriptmode.failure import parse_failure_reason
from scriptmode.platforms.base import ChannelProgress, LogEvent
from scriptmode.request.parse import parse_description

pytestmark = pytest.mark.slow
NOW = datetime(2026, 1, 31, 12, 0, 30, tzinfo=timezone.utc)
NAME = "fashion-mnist-2026-01-31-12-00-00-739"
REASON = (
    "AlgorithmError: algo-2, worker 1: exit code 1\nOpenCV is not installed in /usr/bin/python3: name its package in "
    'requirements.txt\nTraceback (most recent call last):\n  File "/opt/ml/code/train.py", line 3, in <module>\n'
    "ModuleNotFoundError: No module named 'cv2', exit code: 1"
)  # fmt: skip
ENDINGS = {
    "running": {},
    "many hosts": {"ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 400}},
    "failed": {"TrainingJobStatus": "Failed", "FailureReason": REASON},
    "completed": {
        "TrainingJobStatus": "Completed",
        "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/{'folder/' * 20}model.tar.gz"},
    },
    "stopped": {"TrainingJobStatus": "Stopped", "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints"}},
}
PLACES = {"algo-2": f"/home/user/.local/share/scriptmode/jobs/{NAME}/logs/algo-2.log"}
#: Says of every text how well it is read on the page, and whether it is in it; and how wide each card came out.
MEASURE = """
function luminance(colour) {
    const parts = colour.map(part => part / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function rgba(text) { const found = text.match(/[\\d.]+/g).map(Number); return [...found.slice(0, 3), found[3] ?? 1]; }
function over(top, share, below) { return below.map((part, index) => part * (1 - share) + top[index] * share); }
function contrast(element) {
    let opacity = 1, shade = [255, 255, 255];
    const chain = [];
    for (let each = element; each !== document.body; each = each.parentElement) chain.unshift(each);
    for (const each of chain) {
        const style = getComputedStyle(each), background = rgba(style.backgroundColor);
        opacity *= Number(style.opacity);
        shade = over(background, background[3], shade);
    }
    const text = over(rgba(getComputedStyle(element).color), opacity, shade);
    const [light, dark] = [luminance(text), luminance(shade)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
}
function measure(page) {
    const texts = [], walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT), box = page.getBoundingClientRect();
    while (walker.nextNode()) {
        const node = walker.currentNode, element = node.parentElement;
        if (!node.data.trim() || element.closest("svg")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const {left, right, width} = range.getBoundingClientRect();
        texts.push({text: node.data.trim(), contrast: contrast(element), left: left - box.left, right: box.right - right, width});
    }
    const wide = [...page.querySelectorAll("*")].filter(each => !each.closest("svg"))
        .filter(each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
        .map(each => each.outerHTML.slice(0, 300));
    return {texts, wide, lines: [...page.querySelectorAll("polyline")].map(each => each.getBoundingClientRect().width)};
}
const said = document.createElement("pre");
said.id = "measured";
said.textContent = JSON.stringify([...document.querySelectorAll("section")].map(measure));
document.body.appendChild(said);
"""


def described(**fields):
    starts = (("Starting", 30), ("Downloading", 28), ("Training", 20))
    transitions = [{"Status": name, "StartTime": NOW - timedelta(seconds=ago)} for name, ago in starts]
    for before, after in zip(transitions, transitions[1:]):
        before["EndTime"] = after["StartTime"]
    status = fields.get("TrainingJobStatus", "InProgress")
    description = {
        "TrainingJobName": NAME,
        "TrainingJobStatus": status,
        "SecondaryStatus": "Training" if status == "InProgress" else status,
        "CreationTime": NOW - timedelta(seconds=30),
        "LastModifiedTime": NOW,
        "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 2},
        "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "validation:accuracy", "Regex": "acc=([0-9.]+)"}]},
        "SecondaryStatusTransitions": transitions,
    }
    return {**description, **fields}


def card(**fields):
    collector = Collector(NAME)
    collector.set_description(parse_description(described(**fields)))
    if "FailureReason" in fields:
        collector.failure = parse_failure_reason(fields["FailureReason"])
    collector.roles = {"algo-1": "chief", "algo-2": "worker"}
    lines = [
        LogEvent(f"algo-{1 + n % 2}", f"step {n}: acc={n / 300:.3f} <i>'&'</i> {'word ' * (n % 30)}")
        for n in range(300)
    ]
    for line in lines:
        collector.add_event(line)
    for second in (0.0, 2.0):
        data = ChannelProgress("train", "File", int(1e9 + second * 1e8), 4 * 10**9)
        stream = ChannelProgress(
            "a-channel-of-training-records-with-a-long-name", "Pipe", int(2e9 + second * 1e8), None, 2
        )
        collector.add_progress([data, stream], second)
    last = [(line.host, line.message) for line in lines[-20:]] + [("algo-1", "x" * 480)]
    return html_card.render_card(
        collector.snapshot(NOW), lines=last, log_locations=PLACES if "FailureReason" in fields else {}
    )


def browser():
    program = shutil.which("chromium")
    assert program, "the tests of what a notebook shows need a browser: .ci/packages"
    return program


PAGES = {
    "narrow and light": "width:400px;background:#ffffff;color:#000000",
    "narrow and dark": "width:400px;background:#111111;color:#eeeeee",
    "wide and light": "width:1200px;background:#ffffff;color:#000000",
    "wide and dark": "width:1200px;background:#111111;color:#eeeeee",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What a browser makes of all the cards below each other, on each of the pages."""
    cards = "".join(
        [*(card(**fields) for fields in ENDINGS.values()), html_card.render_unknown(NAME, "it was <removed>")]
    )
    folder = tmp_path_factory.mktemp("page")
    file = folder / "page.html"
    sections = "".join(
        f"<section style='box-sizing:border-box;padding:8px;{style}'>{cards}</section>" for style in PAGES.values()
    )
    file.write_text(f"<!doctype html><meta charset=utf-8>{sections}<script>{MEASURE}</script>", encoding="utf-8")
    command = (browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile")
    dump = subprocess.run(
        (*command, "--dump-dom", file.as_uri()), check=True, capture_output=True, text=True, timeout=60
    )
    found = re.search(r'<pre id="measured">(.*?)</pre>', dump.stdout, re.DOTALL)
    return dict(zip(PAGES, json.loads(html.unescape(found.group(1)))))


@pytest.fixture(params=PAGES)
def measured(pages, request):
    return pages[request.param]


def test_nothing_is_wider_than_the_page(measured):
    assert measured["wide"] == []
    assert min(text["right"] for text in measured["texts"]) >= 8
    assert min(text["left"] for text in measured["texts"]) >= 8


def test_every_text_is_seen_and_can_be_read(measured):
    assert len(measured["texts"]) > 100
    for text in measured["texts"]:
        assert text["width"] > 0, text
        # What large and bold text needs (WCAG 2.1, 1.4.3), on either page.
        assert text["contrast"] >= 3.5, text


def test_metrics_are_drawn(measured):
    assert len(measured["lines"]) == len(ENDINGS)
    assert min(measured["lines"]) > 50


def test_what_a_host_wrote_is_text(measured):
    said = " ".join(text["text"] for text in measured["texts"])
    assert "<i>'&'</i>" in said
    assert "it was <removed>" in said


def test_a_failure_says_its_cause_the_place_of_the_log_and_what_to_do(measured):
    said = [text["text"] for text in measured["texts"]]
    assert "algo-2, worker 1: exit code 1" in said
    assert PLACES["algo-2"] in said
    assert f"scriptmode logs {NAME} --host algo-2" in said
    assert f"scriptmode rerun {NAME}" in said
