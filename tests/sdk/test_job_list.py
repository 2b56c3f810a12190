"""The list of jobs: dicts as the service returns them, displayed as a table in a notebook and at the prompt."""

from datetime import datetime, timedelta, timezone

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import TrainingJob
from scriptmode.display.job_list import JobList
from scriptmode.testing import Life


def summary(name, status="Completed", **fields):
    created = datetime.now(timezone.utc) - timedelta(hours=3, seconds=30)
    return {"TrainingJobName": name, "TrainingJobStatus": status, "CreationTime": created, **fields}


JOBS = JobList(
    [
        summary("fashion-2", "InProgress", Distribution="mpi", InstanceCount=2),
        summary("fashion-1", LastMetric={"MetricName": "<b>loss\x1b", "Value": 0.25}),
    ]
)


def test_at_the_prompt_jobs_are_a_table_without_the_columns_that_no_job_has():
    heads, running, completed = [line.split() for line in str(JOBS).splitlines()]
    assert heads == ["CREATED", "AGE", "STATUS", "KIND", "HOSTS", "METRIC", "NAME"]
    assert running[2:] == ["3h", "InProgress", "mpi", "2", "-", "fashion-2"]
    assert completed[2:] == ["3h", "Completed", "-", "-", "<b>loss\\u001b=0.25", "fashion-1"]
    assert repr(JOBS) == str(JOBS)


def test_a_notebook_shows_a_table_with_a_line_for_each_job():
    shown = JOBS._repr_html_()
    assert shown.count("<tr>") == 3
    assert ">fashion-1</td>" in shown
    assert "color:#1f8a4c" in shown
    assert "&lt;b&gt;loss" in shown
    assert "<b>loss" not in shown


def test_of_many_jobs_the_newest_are_displayed():
    many = JobList([summary(f"job-{number}") for number in range(1000)])
    assert len(str(many).splitlines()) == 1 + 40 + 1
    assert str(many).endswith("and 960 more; limit= and status= select jobs")
    assert many._repr_html_().count("<tr>") == 41
    assert "and 960 more" in many._repr_html_()


@pytest.mark.parametrize("shown", [str, repr, JobList._repr_html_])
def test_a_list_without_jobs_says_so(shown):
    assert "no training jobs" in shown(JobList())


def test_the_list_is_still_a_list_of_summaries():
    _, job = started(Life.completed())
    jobs = TrainingJob.list(job.platform)
    assert isinstance(jobs, list)
    assert [each["TrainingJobName"] for each in jobs] == ["job-1"]
    assert "job-1" in str(jobs)
