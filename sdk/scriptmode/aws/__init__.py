"""AWS: sessions and clients, their errors, and the services beside training.

session_objects    the objects that a `scriptmode.Session` reads and writes
s3_transfers       `S3Uploader`, `S3Downloader` and functions of paths, which this package exports
local_bucket       the bucket of a session without an account: a directory of this machine
s3_uris            URIs of S3, and those that stand for this machine
session            clients of a boto3 session or a ``sagemaker`` session
error_translation  boto3's errors, translated into `scriptmode.errors`
iam_role           ARNs of roles, and the role of this notebook
ecr                repositories and registry logins
s3                 objects and buckets, through boto3
s3_errors          botocore's errors, translated into `scriptmode.errors`
retry              retries with backoff and jitter
sagemaker_config   the SageMaker config file
images             look-up of AWS's images
image_table        which TensorFlow images AWS has
image_support      options that a job on one of AWS's TensorFlow images cannot have
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode.aws.s3_transfers import (
        S3Downloader,
        S3Uploader,
        determine_bucket_and_prefix,
        parse_s3_url,
        s3_path_join,
    )
else:

    def __getattr__(name: str) -> Any:
        # Imported at the first use: the other modules of this package do not need them.
        if name not in __all__:
            raise AttributeError(f"module 'scriptmode.aws' has no attribute {name!r}")
        from scriptmode.aws import s3_transfers

        return getattr(s3_transfers, name)


__all__ = ["S3Downloader", "S3Uploader", "determine_bucket_and_prefix", "parse_s3_url", "s3_path_join"]
