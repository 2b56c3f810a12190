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
#: Of tests that are left out, parts of their names, and markers.
NOT_SERVED = {
    "Amazon S3 fails too": ("fails_on_aws", "appendobject", "storage_class"),
    "what the guide says is not served": (
        *("encryption", "sse_s3", "lifecycle", "cloud_transition", "cloud_restore", "s3website", "torrent", "cors"),
        *("bucket_logging", "post_object"),
    ),
    "grants to others, and requests without a signature": (
        *("_acl", "_access_", "access_bucket", "anon", "object_raw_get", "unreadable", "100_continue", "grant", "iam_"),
        *("policy", "public_block", "block_public", "public_acls", "not_owned", "nonowner", "_gone", "ownership"),
    ),
    "all buckets of a server, which tests beside it create": ("buckets_paginated",),
}


def run(folder: Path) -> dict[str, str | None]:
    """Run the tests; return the failure of each, None of one that passed."""
    checkout = sources.repository(REPOSITORY, REVISION)
    python = environment(*PACKAGES, "pytest", "pytest-timeout", "pytest-xdist") / "python"
    keys = AccessKeys(folder)
    left_out = " or ".join(word for words in NOT_SERVED.values() for word in words)
    with server(data_dir=folder) as running:
        config, address = configparser.RawConfigParser(), urlsplit(running.url)
        config["DEFAULT"] = {"host": address.hostname, "port": address.port, "is_secure": "False"}
        config["fixtures"] = {"bucket prefix": "test-{random}-"}
        for name in ("s3 main", "s3 alt", "s3 tenant", "iam", "iam root", "iam alt root"):
            described = dict.fromkeys(("display_name", "user_id", "email", "tenant"), "scriptmode")
            config[name] = {**dict(zip(("access_key", "secret_key"), keys.create())), **described}
        with (folder / "s3tests.conf").open("w") as file:
            config.write(file)
        subprocess.run(
            (python, "-m", "pytest", "s3tests/functional/test_s3.py", "-q", "-n", "3", "-p", "no:cacheprovider", "--timeout", "300",
             "-k", f"not ({left_out})", f"--junitxml={folder}/outcomes.xml"),
            cwd=checkout, env={**os.environ, "S3TEST_CONF": f"{folder}/s3tests.conf", "PYTHONPATH": ""},
            check=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    cases = [case for case in ET.parse(folder / "outcomes.xml").iter("testcase") if case.find("skipped") is None]
    failed = {case: [part.get("message", "") for part in case if part.tag in ("failure", "error")] for case in cases}
    return {case.get("name", ""): texts[0][:300] if texts else None for case, texts in failed.items()}
