"""What a job leaves, as its handle returns it: metrics, artifacts and event files."""
