"""Training platforms behind one protocol.

- `base`: the protocol of a platform, and those of what it may have beside that
- `registry`: chooses a platform by instance type, by name, or by which one has a job
- `sagemaker`: Amazon SageMaker
"""
