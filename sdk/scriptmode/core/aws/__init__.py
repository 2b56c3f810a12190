"""AWS: sessions and clients, their errors, and the services beside training.

session_objects    the objects that a `scriptmode.Session` reads and writes
s3_transfers       `S3Uploader`, `S3Downloader` and functions of paths, of which `scriptmode.aws` is the face
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
