"""Search over descriptions of jobs, as Amazon SageMaker documents its operators; the jobs are dictionaries."""

from datetime import datetime, timezone

import pytest

from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.search import search

LOSSES, TAGS = (
    {"four": 10.0, "two": 9.5},
    {"four": {"team": "a", "sha": "1e999999"}, "two": {"team": "b", "sha": "2e999999"}, "three": {}},
)
FILTERS = """
TrainingJobName NotEquals two -> three four
TrainingJobName Contains o -> four two
TrainingJobName In four,three -> three four
TrainingJobName LessThan z ->
FailureReason Exists -> two
EnableManagedSpotTraining Equals true -> four
Tags.sha Equals 1e999999 -> four
HyperParameters.lr LessThan 0.1 -> two
HyperParameters.lr Equals 0.50 -> four
HyperParameters.a.b Equals four -> four
Metrics.loss GreaterThanOrEqualTo 9.5 -> four two
LastModifiedTime LessThanOrEqualTo 2026-01-31T04:00:00Z -> four two
"""


def job(name, rate, **part):
    channels = [{"ChannelName": "train", "InputMode": "File"}, {"ChannelName": "test", "InputMode": name}]
    part |= {"HyperParameters": {"lr": rate, "a.b": name}, "InputDataConfig": channels, "ProfilingStatus": "Disabled"}
    return {"TrainingJobName": name, "LastModifiedTime": datetime(2026, 1, 31, len(name), tzinfo=timezone.utc), **part}


def found(**request):
    jobs = (
        job("two", "1e-2", FailureReason="no"),
        job("four", "0.5", EnableManagedSpotTraining=True),
        job("three", "adam"),
    )
    metrics = {name: [{"MetricName": "loss", "Value": loss}] for name, loss in LOSSES.items()}
    arguments = {"Resource": "TrainingJob", **request}
    answer = search(jobs, TAGS.get, lambda each: metrics.get(each["TrainingJobName"], []), arguments)
    return " ".join(record["TrainingJob"]["TrainingJobName"] for record in answer["Results"]), answer


@pytest.mark.parametrize("case", FILTERS.strip().splitlines())
def test_a_filter_selects_the_jobs_that_meet_it(case):
    words, _, names = case.partition(" ->")
    condition = dict(zip(("Name", "Operator", "Value"), words.split()))
    assert found(SearchExpression={"Filters": [condition]})[0] == names.strip()


def test_expressions_have_parts_and_what_they_find_is_sorted_and_listed_in_pages():
    small = {"Name": "Metrics.loss", "Operator": "LessThan", "Value": "10"}
    parts = {"Filters": [{"Name": "Tags.team", "Operator": "Exists"}], "SubExpressions": [{"Filters": [small]}]}
    assert [found(SearchExpression={**parts, "Operator": kind})[0] for kind in ("And", "Or")] == ["two", "four two"]
    # One element of the list meets all nested filters.
    wanted = (("ChannelName", "test"), ("InputMode", "two"))
    filters = [{"Name": f"InputDataConfig.{name}", "Value": value} for name, value in wanted]
    nested = [{"NestedPropertyName": "InputDataConfig", "Filters": filters}]
    assert found(SearchExpression={"NestedFilters": nested})[0] == "two"
    nested = [{"NestedPropertyName": "LastModifiedTime", "Filters": filters}]
    assert found(SearchExpression={"NestedFilters": nested})[0] == ""
    assert found(SortBy="HyperParameters.lr", SortOrder="Ascending")[0] == "two four three"
    _, first = found(MaxResults=2)
    assert (first["TotalHits"]["Value"], found(MaxResults=2, NextToken=first["NextToken"])[0]) == (3, "two")
    jobs = [record["TrainingJob"] for record in first["Results"]]
    assert [("ProfilingStatus" in job, len(job["FinalMetricDataList"])) for job in jobs] == [(False, 0), (False, 1)]


def test_what_cannot_be_searched_for_is_refused():
    for name, message in (("Name", "Unknown property name: Name"), ("Tags.a", "The filter of Tags.a needs a Value")):
        with pytest.raises(ApiError, match=message):
            found(SearchExpression={"Filters": [{"Name": name}]})
    with pytest.raises(ApiError, match="in the Resource TrainingJob alone"):
        found(Resource="Endpoint")
