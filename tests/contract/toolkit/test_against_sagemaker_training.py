"""Whatever a script sees under AWS's SageMaker Training Toolkit it sees here, but for the differences that are explained.

Both ``train`` commands really run on the same folders with the same interpreter; so do the functions of AWS's TensorFlow
adapter and of the toolkit that tell several hosts of each other, where a whole run would need several machines.
"""

import json
import subprocess

import pytest
from contract.toolkit import CASES, adapted, clusters
from contract.toolkit.differences import DIFFERENCES, promised
from contract.toolkit.promises import differing
from contract.toolkit.running import commands, variables
from fakes.host_folders import write_files

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

RUN = [*CASES, *adapted.CASES]
ASKED = [*clusters.CLUSTERS, *clusters.MPIRUN]


def check(case, record):
    promise, _ = promised(case, record["theirs"])
    found = differing(promise, record["ours"])
    assert not found, "\n".join(["not explained:", *(f"{path}: {values}" for path, values in found.items())])


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.id)
def test_a_job_runs_as_under_the_toolkit_but_for_what_is_explained(case, trained):
    check(case, trained[case.id])


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_several_hosts_are_told_of_each_other_as_by_the_toolkit_but_for_what_is_explained(case, told):
    check(case, told[case.id])


@pytest.mark.parametrize("this", [1, 2])
@pytest.mark.parametrize("version", ["2.15.1", "2.21.0"])
def test_parameter_servers_have_the_adapters_cluster_with_every_tensorflow(toolkit_process, tmp_path, version, this):
    case = clusters.of(2, this, "parameter servers")
    theirs = toolkit_process.ask("cluster", case)
    case.write(tmp_path / "host")
    env = variables(case, tmp_path / "host")
    installed = write_files(tmp_path / "installed", {f"tensorflow-{version}.dist-info/METADATA": "Name: tensorflow\n"})
    env["PYTHONPATH"] += f":{installed}"
    plan = json.loads(subprocess.check_output([*commands()["ours"], "--plan"], env=env))
    assert json.loads(plan["main"]["env"]["TF_CONFIG"]) == theirs["TF_CONFIG"]
    (server,) = plan["services"]
    config = json.loads(server["env"]["TF_CONFIG"])
    assert {"cluster": config["cluster"], "task": config["task"]} == theirs["ps"]


def test_every_explained_difference_is_one_that_a_case_shows(trained, told, trained_from_s3):
    on_s3, records = trained_from_s3
    records = {**records, **trained, **told}
    shown = set().union(*(promised(case, records[case.id]["theirs"])[1] for case in (*RUN, *ASKED, *on_s3)))
    assert {difference.id for difference in DIFFERENCES} == shown


def test_ids_of_cases_and_of_differences_differ():
    for ids in ([case.id for case in (*RUN, *ASKED)], [difference.id for difference in DIFFERENCES]):
        assert len(ids) == len(set(ids))
