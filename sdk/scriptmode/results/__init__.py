"""What a job leaves, as its handle returns it: metrics, artifacts, event files and comparisons."""
