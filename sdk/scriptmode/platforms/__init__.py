"""What runs training jobs: the protocol of a platform, the look-up of one, Amazon SageMaker and this machine."""
