"""What a job of this machine leaves: metrics in its log, a model to fetch, a place in the list."""

from datetime import datetime, timedelta, timezone

import pytest

from scriptmode import Estimator, RequestError, TrainingInput, TrainingJob

SCRIPT = """
import os
for epoch in range(3):
    print(f"epoch {epoch} loss={1 / (epoch + 1)} accuracy=0.{epoch}", flush=True)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w") as file:
    file.write("heavy")
"""
DEFINITIONS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}, {"Name": "accuracy", "Regex": r"accuracy=(\S+)"}]


@pytest.fixture
def finished(jobs, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "images").write_bytes(b"x")
    made = Estimator(
        entry_point=str(tmp_path / "train.py"), instance_type="local_process", platform=jobs.platform,
        metric_definitions=DEFINITIONS, tags={"team": "vision"}, base_job_name="results",
    )  # fmt: skip
    return made.fit(TrainingInput(f"file://{tmp_path / 'data'}"))


def test_a_finished_job_is_told_whole(finished, tmp_path, capsys):
    rows = [(row["metric_name"], row["value"]) for row in finished.metrics()]
    assert rows == [
        ("loss", 1.0),
        ("loss", 0.5),
        ("loss", 1 / 3),
        ("accuracy", 0.0),
        ("accuracy", 0.1),
        ("accuracy", 0.2),
    ]
    assert (finished.download_model(tmp_path / "model") / "weights").read_text() == "heavy"
    assert list(finished.inputs()) == ["training"]
    attached = Estimator.attach(finished.name, platform=finished.platform)
    assert attached.spec.tags == (("team", "vision"),)
    assert attached.spec.base_job_name == "results"


def test_the_status_is_told_between_the_log_lines(finished, capsys):
    finished.follow()
    said = capsys.readouterr().out.splitlines()
    statuses = [line for line in said if line.startswith("-- ")]
    assert [line.split(":")[0] for line in statuses] == [
        "-- Starting", "-- Downloading", "-- Training", "-- Uploading", "-- Completed",
    ]  # fmt: skip
    assert "algo-1 | epoch 0 loss=1.0 accuracy=0.0" in said


def test_jobs_are_listed_by_what_is_asked(finished):
    def names(**which):
        return [summary["TrainingJobName"] for summary in TrainingJob.list(finished.platform, **which)]

    an_hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    assert names() == [finished.name]
    assert names(status="Completed", name_contains="results", created_after=an_hour_ago) == [finished.name]
    assert names(status="Failed") == []
    assert names(created_before=an_hour_ago) == []


def test_tensorboards_output_is_not_lost_in_silence(jobs, code):
    made = Estimator(
        entry_point="train.py", source_dir=code, instance_type="local_process", platform=jobs.platform,
        tensorboard_output_config={"S3OutputPath": "s3://b/tb"},
    )  # fmt: skip
    with pytest.raises(RequestError, match="TensorBoardOutputConfig.*SM_OUTPUT_DATA_DIR"):
        made.fit()
