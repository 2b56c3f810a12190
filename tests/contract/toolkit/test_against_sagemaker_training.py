"""Whatever a script sees under AWS's SageMaker Training Toolkit it sees here, but for the differences that are explained.

Both ``train`` commands really run on the same folders with the same interpreter; so do the functions of AWS's TensorFlow
adapter and of the toolkit that tell several hosts of each other, where a whole run would need several machines.
"""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from contract.explained import assert_all_shown, assert_explained, differing
from contract.toolkit import CASES, clusters, sources
from contract.toolkit.case import Case, encoded
from contract.toolkit.differences import DIFFERENCES, promised
from contract.toolkit.running import run_both

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.slow]


ASKED = [*clusters.CLUSTERS, *clusters.MPIRUN]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_job_runs_as_under_the_toolkit_but_for_what_is_explained(case, trained):
    record = trained[case.id]
    assert_explained(promised(case, record["theirs"])[0], record["ours"])


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_the_cluster_of_several_hosts_is_the_toolkits_but_for_what_is_explained(case, answered):
    record = answered[case.id]
    assert_explained(promised(case, record["theirs"])[0], record["ours"])


def test_every_explained_difference_is_one_that_a_case_shows(trained, answered, trained_from_s3):
    on_s3, records = trained_from_s3
    records, cases = {**records, **trained, **answered}, [*CASES, *ASKED, *on_s3]
    assert len({case.id for case in cases}) == len(cases)
    assert_all_shown(DIFFERENCES, (promised(case, records[case.id]["theirs"])[1] for case in cases))


KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
REGIONS = {
    "the platform's": ({}, {"AWS_REGION": "eu-west-1"}),
    "the default": ({}, {"AWS_DEFAULT_REGION": "eu-west-2"}),
    "the request's": ({"sagemaker_region": "us-west-2"}, {}),
    "all": ({"sagemaker_region": "us-west-2"}, {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}),
}


def test_a_source_comes_from_the_server_that_is_named(trained_from_s3):
    cases, records = trained_from_s3
    for case in cases:
        promise, _ = promised(case, records[case.id]["theirs"])
        assert differing(promise, records[case.id]["ours"]) == {}, case.id
        assert bool(records[case.id]["ours"]["script"]) == ("not there" not in case.id)


@pytest.fixture
def asked_for():
    """A server that has nothing, and the regions whose signatures came to it."""
    regions = []

    class Nothing(BaseHTTPRequestHandler):
        def do_HEAD(self):
            signed = re.search(r"Credential=[^/]+/\d+/([^/]*)/", self.headers["Authorization"])
            regions.append(signed[1])
            self.send_response(404)
            self.end_headers()

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", regions
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("hyperparameters", "variables"), REGIONS.values(), ids=REGIONS)
def test_a_source_on_s3_is_asked_for_in_the_toolkits_region(tmp_path, asked_for, hyperparameters, variables):
    endpoint, regions = asked_for
    place = encoded(sagemaker_submit_directory=f"s3://{sources.BUCKET}/absent", **hyperparameters)
    variables = {**KEYS, **variables, "AWS_ENDPOINT_URL_S3": endpoint}
    run_both(Case("region", place, variables=variables, code={}), tmp_path / "job")
    theirs, ours = regions
    assert ours == theirs
