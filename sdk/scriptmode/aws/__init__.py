"""What the SDK knows of AWS beside its training service: S3, retries, the SageMaker config file and AWS's images."""
