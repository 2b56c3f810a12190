from dataclasses import replace

import pytest
from contract.toolkit import CASES, sources
from contract.toolkit.asking import answers, toolkit
from contract.toolkit.running import run_all, run_both


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Records of the toolkit's ``train`` and of ours for every case, by its id."""
    return run_all(CASES, tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def trained_from_s3(tmp_path_factory, s3_server):
    """The same for cases whose source is on S3, with the server named in each way there is."""
    s3_server.bucket(sources.BUCKET, {sources.KEY: sources.archive()})
    endpoint = s3_server.environment["AWS_ENDPOINT_URL"]
    keys = {name: value for name, value in s3_server.environment.items() if name != "AWS_ENDPOINT_URL"}
    cases = [
        replace(case, id=f"{case.id}, {name}", variables={**keys, name: endpoint})
        for case in sources.ON_S3
        for name in ("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL")
    ]
    folder = tmp_path_factory.mktemp("trained")
    records = run_all(cases, folder)

    def stored():
        listed = s3_server.client.list_objects_v2(Bucket=sources.BUCKET, Prefix="copied/").get("Contents", [])
        for item in listed:
            s3_server.client.delete_object(Bucket=sources.BUCKET, Key=item["Key"])
        return {"stored": [item["Key"] for item in listed]}

    copied = replace(sources.COPIED, variables={**keys, **sources.COPIED.variables, "AWS_ENDPOINT_URL": endpoint})
    records[copied.id] = run_both(copied, folder / "copied", stored)
    return [*cases, copied], records


@pytest.fixture(scope="session")
def answered(tmp_path_factory):
    """The toolkit's answers and ours for every case of several hosts, by its id."""
    with toolkit(tmp_path_factory.mktemp("answered")) as process:
        return answers(process)


@pytest.fixture(scope="session")
def toolkit_process(tmp_path_factory):
    """The toolkit in a process that answers questions."""
    with toolkit(tmp_path_factory.mktemp("asked")) as process:
        yield process
