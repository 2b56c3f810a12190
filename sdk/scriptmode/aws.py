"""Transfers of objects of S3, under the names of ``sagemaker.s3``. Public are the names in ``__all__``."""

from scriptmode._core.aws.s3_transfers import (
    S3Downloader,
    S3Uploader,
    determine_bucket_and_prefix,
    parse_s3_url,
    s3_path_join,
)

__all__ = ["S3Downloader", "S3Uploader", "determine_bucket_and_prefix", "parse_s3_url", "s3_path_join"]
