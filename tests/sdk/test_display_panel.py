"""What is known of a job at a moment, and the panel that shows it in as few rows as there are."""

from datetime import datetime, timedelta, timezone
from itertools import product

import pytest

from scriptmode import HostActivity, LogEvent
from scriptmode._core.request.parse import parse_description
from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._display import html_card
from scriptmode._display.collector import Collector
from scriptmode._display.snapshot import create_snapshot
from scriptmode._display.status_panel import panel_rows

NOW = datetime(2026, 1, 31, 12, 0, 30, tzinfo=timezone.utc)
METRICS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}, {"Name": "validation:accuracy", "Regex": "acc=([0-9.]+)"}]


def described(hosts=2, status="InProgress", **fields):
    starts = (("Starting", 30), ("Downloading", 28), ("Training", 20))
    transitions = [{"Status": name, "StartTime": NOW - timedelta(seconds=ago)} for name, ago in starts]
    for before, after in zip(transitions, transitions[1:]):
        before["EndTime"] = after["StartTime"]
    if status != "InProgress":
        transitions[-1]["EndTime"] = NOW
    return {
        "TrainingJobName": "job-1", "TrainingJobStatus": status, "SecondaryStatus": "Training",
        "CreationTime": NOW - timedelta(seconds=30),
        "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": hosts},
        "AlgorithmSpecification": {"MetricDefinitions": METRICS}, "SecondaryStatusTransitions": transitions,
        **fields,
    }  # fmt: skip


def collected(lines=(), **fields):
    collector = Collector("job-1")
    collector.set_description(parse_description(described(**fields)))
    for host, message in lines:
        collector.add_event(LogEvent(host, message))
    return collector


def rows(view, columns, room):
    return [row.plain for row in panel_rows(view, columns, room)]


def test_a_description_tells_history_time_and_hosts():
    view = create_snapshot(parse_description(described()), NOW)
    assert view.history == ("Starting 2.0 s", "Downloading 8.0 s", "Training 20 s")
    assert (view.elapsed, view.instances, view.ended) == (30, "2 x local_process", False)
    assert view.commands() == ("scriptmode logs -f job-1", "scriptmode stop job-1")
    ended = described(status="Stopped", LastModifiedTime=NOW, CheckpointConfig={"S3Uri": "s3://b/c"})
    view = create_snapshot(parse_description(ended), NOW + timedelta(days=7))
    assert (view.elapsed, view.checkpoints) == (30, "s3://b/c")
    assert view.commands() == ("scriptmode logs job-1", "scriptmode rerun job-1")
    view = create_snapshot(parse_description({"TrainingJobName": "job-1", "TrainingJobStatus": "Completed"}), NOW)
    assert (view.history, view.elapsed, view.instances, view.ended) == ((), 0, "", True)


def writing(**lines):
    return {host.replace("_", "-"): HostActivity(line) for host, line in lines.items()}


def test_a_line_that_has_not_ended_is_the_hosts_line_without_control_sequences():
    collector = collected([("algo-1", "one"), ("algo-2", "two")])
    collector.set_activity(writing(algo_1="\x1b[2J\r 10%\x1b]0;title\x07\r\x1b[31m 20%\x1b[0m", algo_2="  \r  "))
    assert [each.line for each in collector.snapshot(NOW).hosts] == ["20%", "two"]
    assert ">20%<" in html_card.render_card(collector.snapshot(NOW))
    collector.add_event(LogEvent("algo-1", " 10%\r 20%\rdone"))
    collector.set_activity(writing(algo_1="", algo_2=""))
    assert [each.line for each in collector.snapshot(NOW).hosts] == ["done", "two"]
    collector.set_activity(writing(algo_3="\r1%"))
    assert [each.name for each in collector.snapshot(NOW).hosts] == ["algo-1", "algo-2", "algo-3"]


def test_the_values_of_a_line_that_has_not_ended_are_replaced_by_those_of_the_ended_line():
    def losses():
        (loss,) = collector.snapshot(NOW).metrics
        return loss.last, loss.points

    collector = collected([("algo-1", "loss=9")])
    for line in ("\rloss=8", "\rloss=8", "\rloss=8\rloss=7", "\rloss=7\r     \r"):
        collector.set_activity(writing(algo_1=line))
    assert losses() == (7.0, (9.0,))
    collector.add_event(LogEvent("algo-1", "loss=8\rloss=7\rloss=6"))
    assert losses() == (6.0, (9.0, 6.0))
    collector = collected()
    for line in ("\rloss=8", "\rloss=8", "\rloss=8\rloss=7"):
        collector.set_activity(writing(algo_1=line))
    assert losses() == (7.0, (8.0, 7.0))
    collector = collected()
    collector.set_activity(writing(algo_2="\r1/9 loss=4", algo_1="\r1/9 loss=3"))
    assert losses() == (3.0, (3.0,))


LOSSES = [("algo-2", "loss=9"), ("algo-1", "loss=2 acc=0.5"), ("algo-2", "loss=8"), ("algo-1", "loss=1")]


def test_a_metric_of_several_hosts_shows_the_first_host_with_its_name():
    view = collected(LOSSES).snapshot(NOW)
    found = [(each.name, each.last, each.points, each.host) for each in view.metrics]
    assert found == [("loss", 1.0, (2.0, 1.0), "algo-1"), ("validation:accuracy", 0.5, (0.5,), "")]
    (row,) = [row for row in rows(view, 80, 30) if row.startswith("  loss")]
    assert row.split() == ["loss", "1", "\u2588\u2581", "algo-1"]
    assert "<b>loss of algo-1</b>" in html_card.render_card(view)
    (loss,) = collected([*LOSSES[:1], ("algo-2", "loss=.")]).snapshot(NOW).metrics
    assert (loss.last, loss.host) == (9.0, "")


def staged(*samples, mode="File", **fields):
    """What a view says of a channel of which so many of 20,000 bytes had arrived at these seconds."""
    collector = collected(**fields)
    for second, done in samples:
        collector.add_progress([ChannelProgress("train", mode, done, 20_000)], float(second))
    (row,) = collector.snapshot(NOW).channels
    return row.text.partition("%)")[2]


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        # Fast at first, then 100 bytes a second.
        pytest.param(
            [(n, 10_000 + 100 * n if n else 0) for n in range(30)], "100 bytes/s{}, 1 min 11 s left", id="last"
        ),
        pytest.param([(n, 40 * (n // 2)) for n in range(61)], "22 bytes/s{}, 14 min 21 s left", id="steps"),
        pytest.param([(0, 5), (0.1, 6)], "", id="too early"),
        pytest.param([(0, 5), (5, 20_000)], "", id="complete"),
        pytest.param([(0, 20_000), (5, 3)], "0 bytes/s{}", id="read again"),
        pytest.param([(0, 0), (5, 10_000)], "2.0 kB/s, 5.0 s left", id="fast"),
    ],
)
def test_a_rate_is_that_of_the_last_seconds(samples, said):
    limit = " (a download of less than 1.0 kB/s fails)"
    assert staged(*samples) == (said and ", " + said.format(limit))
    assert staged(*samples, mode="Pipe") == (said and ", " + said.format(""))
    assert staged(*samples, status="Stopped") == ""


def full(hosts=2):
    lines = [(f"algo-{1 + n % hosts}", f"step {n}: loss={1 / (1 + n):.4f} acc={n / 500:.3f} 图") for n in range(500)]
    collector = collected(lines, hosts=hosts)
    collector.roles = {"algo-1": "chief"}
    stream = ChannelProgress("stream", "Pipe", 3 * 10**9, None, 2)
    for second in (0.0, 2.0):
        collector.add_progress(
            [ChannelProgress("train", "File", 10**9 + int(second * 10**8), 4 * 10**9), stream], second
        )
    return collector.snapshot(NOW)


def test_the_panel_shows_everything_where_there_is_room():
    said = rows(full(), 78, 12)
    assert said[0].startswith("── Training 30 s ── job-1 ──")
    assert said[1:4] == [
        "  Starting 2.0 s \u203a Downloading 8.0 s \u203a Training 20 s",
        "  train staged 1.2 GB of 4.0 GB (30%), 100.0 MB/s, 28 s left",
        "  stream streamed 3.0 GB, epoch 2, 0 bytes/s",
    ]
    assert [line.split()[:2] for line in said[4:6]] == [["loss", "0.002"], ["validation:accuracy", "0.996"]]
    assert all(line.endswith(" algo-1") for line in said[4:6])
    assert said[6:] == [
        "  algo-1 chief · step 498: loss=0.0020 acc=0.996 图",
        "  algo-2 · step 499: loss=0.0020 acc=0.998 图",
    ]


def doing(**usage):
    collector = collected([("algo-1", "loading"), ("algo-10", "up")], hosts=1)
    collector.roles = {"algo-1": "chief, worker"}
    collector.set_activity(
        {
            "algo-1": HostActivity(silent_seconds=12.4, cpu_percent=98.7, memory_bytes=1_300_000_000, **usage),
            "algo-10": HostActivity(silent_seconds=1.0, cpu_percent=7.0, memory_bytes=85_100_000),
        }
    )
    return collector.snapshot(NOW)


def test_hosts_have_their_resources_and_say_if_they_are_silent():
    assert rows(doing(gpu_percent=87.0, gpu_memory_bytes=10_000_000_000), 100, 12)[-2:] == [
        "  algo-1  chief, worker · CPU 99%, 1.3 GB, GPU 87%, 10.0 GB · no output for 12 s · loading",
        "  algo-10 CPU 7%, 85.1 MB · up",
    ]
    card = html_card.render_card(doing(gpu_percent=87.0))
    assert ">chief, worker \u00b7 CPU 99%, 1.3 GB, GPU 87% \u00b7 no output for 12 s<" in card
    assert rows(doing(), 40, 12)[-2] == "  algo-1  chief, worker · CPU 99%, 1.3 …"


def test_the_panel_never_takes_more_room_than_there_is():
    view = full(hosts=100)
    for columns, room in product([1, 2, 5, 18, 38, 78, 198], [0, 1, 2, 6, 12, 30]):
        drawn = panel_rows(view, columns, room)
        assert 1 <= len(drawn) <= max(1, room)
        assert all(row.cell_len <= columns and "\n" not in row.plain for row in drawn)


def test_a_long_message_is_continued_in_the_next_rows():
    message = "Waiting in the queue: number 2; expected start 12:30; other jobs have a higher priority"
    pending = [{"Status": "Pending", "StartTime": NOW, "StatusMessage": message}]
    view = collected(SecondaryStatus="Pending", SecondaryStatusTransitions=pending).snapshot(NOW)
    found = [row.strip() for row in rows(view, 40, 12)]
    assert " ".join(found[2:5]) == message
    assert rows(view, 40, 3)[2].strip().startswith("Waiting in the queue")
    assert (rows(view, 100, 12)[2], len(rows(view, 100, 2))) == (f"  {message}", 2)


def test_of_many_hosts_as_many_are_shown_as_fit_and_what_fits_nowhere_is_counted():
    said = rows(full(hosts=100), 78, 12)
    assert (len(said), said[-1].strip()) == (12, "and 95 more hosts")
    said = rows(full(hosts=100), 78, 5)
    assert [line.strip() for line in said[2:]] == ["2 channels", "2 metrics", "100 hosts"]


def test_the_card_of_an_ended_job_offers_the_plot_and_the_model():
    running = html_card.render_card(collected().snapshot(NOW))
    assert "Training 20 s" in running
    assert "job.plot()" not in running
    assert "job.model" not in running
    artifacts = {"S3ModelArtifacts": "s3://b/model.tar.gz"}
    ended = collected(LOSSES, status="Completed", LastModifiedTime=NOW, ModelArtifacts=artifacts).snapshot(NOW)
    completed = html_card.render_card(ended)
    places = [completed.index(part) for part in (">job.plot()<", ">job.model<", "scriptmode model download")]
    assert places == sorted(places)
