"""The outputs of a job.

- `artifacts`: packing and delivery of model.tar.gz and output.tar.gz
- `checkpoints`: checkpoint sync while the hosts train
- `metrics`: metrics parsed from the log

The agent imports this package, and the service imports `metrics`. It imports neither hosts nor inputs.
"""
