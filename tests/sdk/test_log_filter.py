"""The lines of some hosts, and the last of each."""

from collections import Counter

import pytest
from fakes.local_jobs import LocalJobs

from scriptmode import SpecError, TrainingJob

SCRIPT = """
import os
for number in range(5):
    print("line", number, flush=True)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    jobs = LocalJobs(tmp_path_factory.mktemp("jobs"))
    description = jobs.run(SCRIPT, hosts=2)
    yield TrainingJob(description["TrainingJobName"], jobs.platform)
    jobs.close()


@pytest.mark.parametrize("follow", [False, True], ids=["so far", "to the end"])
def test_lines_are_of_the_hosts_that_are_named(job, follow):
    everything = list(job.logs(follow=follow))
    second = [event for event in everything if event.host == "algo-2"]
    assert list(job.logs(follow=follow, hosts=["algo-2"])) == second
    assert sorted(map(repr, job.logs(follow=follow, hosts=["algo-1", "algo-2"]))) == sorted(map(repr, everything))


@pytest.mark.parametrize("tail", [0, 1, 3, 1000])
def test_the_tail_is_the_last_lines_of_each_host(job, tail):
    whole = Counter(event.host for event in job.logs())
    found = list(job.logs(tail=tail))
    assert (
        Counter(event.host for event in found)
        == Counter({host: min(tail, count) for host, count in whole.items()}) + Counter()
    )
    for host in whole:
        of_host = [event.message for event in job.logs(hosts=[host])]
        assert [event.message for event in found if event.host == host] == of_host[
            len(of_host) - min(tail, len(of_host)) :
        ]


def test_one_host_may_be_named_alone(job):
    assert list(job.logs(hosts="algo-2")) == list(job.logs(hosts=["algo-2"]))


def test_lines_are_printed_as_they_are_chosen(job, capsys):
    job.print_logs(hosts=["algo-1"], tail=1)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("algo-1 | ")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"hosts": ["algo-3"]}, "has no host 'algo-3'; it has algo-1 to algo-2"),
        ({"hosts": 3}, r"hosts is 3; give names of hosts, such as \['algo-1'\]"),
        ({"hosts": [3]}, "hosts is"),
        ({"tail": -1}, "tail is -1; give a whole number of lines"),
        ({"tail": "3"}, "tail is '3'"),
    ],
    ids=["host", "no names", "no name", "negative", "text"],
)
def test_a_wrong_choice_is_refused_at_once(job, choice, message):
    with pytest.raises(SpecError, match=message):
        job.logs(**choice)
