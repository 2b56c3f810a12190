"""Training platforms: Amazon SageMaker and this machine behind one protocol.

- `base`: the protocol of a platform, and those of what it may have beside that
- `registry`: chooses a platform by instance type, by name, or by which one has a job
- `opt_ml`, `planned_containers`: what both platforms compute from a request
- `sagemaker`, `local`: the platforms

The estimator, the job handle and the command line get a platform from `registry` and use it by the protocol alone.
"""
