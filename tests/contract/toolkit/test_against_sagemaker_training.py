"""Whatever a script sees under AWS's SageMaker Training Toolkit it sees here, but for the differences that are explained.

Both ``train`` commands really run on the same folders with the same interpreter; so do the functions of AWS's TensorFlow
adapter and of the toolkit that tell several hosts of each other, where a whole run would need several machines.
"""

import pytest
from contract.explained import assert_all_shown, assert_explained
from contract.toolkit import CASES, clusters
from contract.toolkit.differences import DIFFERENCES, promised

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.slow]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_job_runs_as_under_the_toolkit_but_for_what_is_explained(case, trained):
    record = trained[case.id]
    assert_explained(promised(case, record["theirs"])[0], record["ours"])


@pytest.mark.parametrize("case", clusters.CLUSTERS, ids=lambda case: case.id)
def test_the_cluster_of_several_hosts_is_the_toolkits_but_for_what_is_explained(case, answered):
    record = answered[case.id]
    assert_explained(promised(case, record["theirs"])[0], record["ours"])


def test_every_explained_difference_is_one_that_a_case_shows(trained, answered):
    records, cases = {**trained, **answered}, [*CASES, *clusters.CLUSTERS]
    assert len({case.id for case in cases}) == len(cases)
    assert_all_shown(DIFFERENCES, (promised(case, records[case.id]["theirs"])[1] for case in cases))
