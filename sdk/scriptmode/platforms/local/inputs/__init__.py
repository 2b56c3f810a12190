"""How a job's channels reach its hosts: copied, streamed through pipes, or mounted."""
