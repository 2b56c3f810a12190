"""What a job leaves: artifacts, checkpoints and metrics."""
