"""What runs on each training host: reads the platform's files, runs the user's script, tells how it ended."""
