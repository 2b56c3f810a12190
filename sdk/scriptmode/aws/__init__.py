"""AWS beside its training service.

s3             objects and buckets, through boto3
s3_errors      botocore's errors, translated into `scriptmode.errors`
retry          retries with backoff and jitter
config         the SageMaker config file
images         look-up of AWS's images by an installed ``sagemaker`` package
image_support  options that a job on one of AWS's TensorFlow images cannot have
"""
