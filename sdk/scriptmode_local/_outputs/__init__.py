"""The outputs of a job.

- `packed_artifacts`: packing and delivery of model.tar.gz and output.tar.gz
- `checkpoints`: checkpoint sync while the hosts train
- `log_metrics`: metrics parsed from the log

The agent imports this package, and the service imports `log_metrics`. It imports neither hosts nor inputs.
"""
