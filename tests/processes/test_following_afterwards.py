"""A real job that had ended before it is followed."""

from fakes.followed import Last

from scriptmode.display.follower import Follower


def test_every_line_of_its_log_is_searched_for_metrics(jobs):
    request = jobs.request("for number in range(6000): print(f'loss={number}')")
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    jobs.wait(name)
    view = Last()
    Follower(name, jobs.platform, view).run()
    assert [each.count for each in view.frame.snapshot.observed.metrics] == [6000]
    assert view.frame.snapshot.status == "Completed"
