"""Transfers of objects of S3, under the names of ``sagemaker.s3``. Public are the names in ``__all__``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode._core.aws.s3_transfers import (
        S3Downloader,
        S3Uploader,
        determine_bucket_and_prefix,
        parse_s3_url,
        s3_path_join,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'scriptmode.aws' has no attribute {name!r}")
        from scriptmode._core.aws import s3_transfers

        return getattr(s3_transfers, name)


__all__ = ["S3Downloader", "S3Uploader", "determine_bucket_and_prefix", "parse_s3_url", "s3_path_join"]
