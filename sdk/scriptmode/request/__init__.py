"""The service's CreateTrainingJob request: rendered from a job, parsed back into one, rendered anew, checked. Pure."""
