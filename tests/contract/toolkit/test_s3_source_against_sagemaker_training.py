"""A source on S3 is fetched as under AWS's SageMaker Training Toolkit: from the same server, in the same region."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from contract.toolkit import sources
from contract.toolkit.case import Case, encoded
from contract.toolkit.differences import promised
from contract.toolkit.promises import differing
from contract.toolkit.running import run_both

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
REGIONS = {
    "the platform's": ({}, {"AWS_REGION": "eu-west-1"}),
    "the default": ({}, {"AWS_DEFAULT_REGION": "eu-west-2"}),
    "the request's": ({"sagemaker_region": "us-west-2"}, {}),
    "the platform's before all": (
        {"sagemaker_region": "us-west-2"},
        {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"},
    ),
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


def asked(asked_for, folder, hyperparameters, variables):
    endpoint, regions = asked_for
    place = encoded(sagemaker_submit_directory=f"s3://{sources.BUCKET}/absent", **hyperparameters)
    run_both(Case("region", place, variables={**KEYS, **variables, "AWS_ENDPOINT_URL_S3": endpoint}, code={}), folder)
    return regions


@pytest.mark.parametrize(("hyperparameters", "variables"), REGIONS.values(), ids=REGIONS)
def test_it_is_asked_for_in_the_toolkits_region(tmp_path, asked_for, hyperparameters, variables):
    theirs, ours = asked(asked_for, tmp_path / "job", hyperparameters, variables)
    assert ours == theirs


def test_where_no_region_is_said_boto3_has_one_and_the_toolkit_none(tmp_path, asked_for):
    assert asked(asked_for, tmp_path / "job", {}, {}) == ["", "us-east-1"]
