"""Ceph's s3-tests, of which Amazon S3 itself passes most, against the S3 of ``scriptmode serve`` with access keys."""

from __future__ import annotations

import configparser
import os
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from tests.foreign_suites import sources
from tests.references import environment

from scriptmode.testing import server
from scriptmode_serve._http.access_keys import AccessKeys

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "8f0ae7b"
REPOSITORY = "ceph/s3-tests"
REVISION = "8f0ae7b404a3a2fcf7038bf1e6bf29544fe9b6a3"
PACKAGES = ("boto3", "munch", "isodate", "requests", "pytz", "httplib2", "lxml", "PyYAML")
FILE = "s3tests/functional/test_s3.py"
#: Markers of what the guide says is not served, and of what Amazon S3 does not have, and parts of the tests' names.
NOT_SERVED = {
    "Amazon S3 fails too": ("fails_on_aws", "appendobject", "storage_class"),
    "logs of requests": ("bucket_logging", "bucket_logging_cleanup"),
    "encryption": ("encryption", "sse_s3", "bucket_encryption"),
    "lifecycle rules and storage classes": ("lifecycle", "cloud_transition", "cloud_restore"),
    "websites": ("s3website",),
    "several owners and their policies": ("bucket_policy", "object_ownership", "iam_user", "iam_account", "iam_tenant"),
}
NOT_SERVED_BY_NAME = {
    "ACLs, policies and requests without a signature": (
        *("_acl", "_access_", "access_bucket", "anon", "object_raw_get", "unreadable", "100_continue", "grant"),
        *("policy", "public_block", "block_public", "public_acls", "not_owned", "nonowner", "_gone"),
    ),
    "forms of browsers": ("post_object",),
    "CORS": ("cors",),
    "BitTorrent": ("torrent",),
    "all buckets of a server, which tests beside it create": ("buckets_paginated",),
}
#: Of one test; those with more than 1,000 objects need most of them.
SECONDS = 300


def run(folder: Path) -> dict[str, str | None]:
    """Run the tests; return the failure of each, None of one that passed."""
    checkout = sources.repository(REPOSITORY, REVISION)
    python = environment(*PACKAGES, "pytest", "pytest-timeout", "pytest-xdist") / "python"
    data = folder / "data"
    data.mkdir()
    keys = AccessKeys(data)
    sections = ("s3 main", "s3 alt", "s3 tenant", "iam", "iam root", "iam alt root")
    identities = {name: keys.create() for name in sections}
    markers = " or ".join(marker for some in NOT_SERVED.values() for marker in some)
    names = " or ".join(name for some in NOT_SERVED_BY_NAME.values() for name in some)
    with server(data_dir=data) as running:
        config = configparser.RawConfigParser()
        address = urlsplit(running.url)
        config["DEFAULT"] = {"host": address.hostname, "port": address.port, "is_secure": "False"}
        config["fixtures"] = {"bucket prefix": "test-{random}-"}
        for name, key in identities.items():
            described = dict.fromkeys(("display_name", "user_id", "email", "tenant"), "scriptmode")
            config[name] = {"access_key": key.identifier, "secret_key": key.secret, **described}
        with (folder / "s3tests.conf").open("w") as file:
            config.write(file)
        subprocess.run(
            (python, "-m", "pytest", FILE, "-q", "-n", "3", "-p", "no:cacheprovider", "--timeout", str(SECONDS),
             "-m", f"not ({markers})", "-k", f"not ({names})", f"--junitxml={folder}/outcomes.xml"),
            cwd=checkout, env={**os.environ, "S3TEST_CONF": f"{folder}/s3tests.conf", "PYTHONPATH": ""},
            check=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    cases = ET.parse(folder / "outcomes.xml").iter("testcase")
    return {case.get("name", ""): _failure(case) for case in cases if case.find("skipped") is None}


def _failure(case: ET.Element) -> str | None:
    failure = next((part for part in case if part.tag in ("failure", "error")), None)
    return None if failure is None else failure.get("message", "failed")[:300]
