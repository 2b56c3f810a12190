"""AWS: sessions and clients, their errors, and the services beside training.

session            clients of a boto3 session or a ``sagemaker`` session
error_translation  boto3's errors, translated into `scriptmode.errors`
iam_role           ARNs of roles, and the role of this notebook
ecr                repositories and registry logins
s3             objects and buckets, through boto3
s3_errors      botocore's errors, translated into `scriptmode.errors`
retry          retries with backoff and jitter
config         the SageMaker config file
images         look-up of AWS's images by an installed ``sagemaker`` package
image_support  options that a job on one of AWS's TensorFlow images cannot have
"""
