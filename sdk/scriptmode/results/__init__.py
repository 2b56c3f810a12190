"""What a job gave: its outcome, log lines, metrics, artifacts and event files."""
