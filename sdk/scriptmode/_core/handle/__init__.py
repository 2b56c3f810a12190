"""What the handle of a job returns and prints."""
