"""Retry requests to S3 for 3 seconds instead of a minute, in each Python that has this folder on its PYTHONPATH."""

from scriptmode.data.s3_store import S3Store

S3Store.__init__.__kwdefaults__["retry_seconds"] = 3.0
