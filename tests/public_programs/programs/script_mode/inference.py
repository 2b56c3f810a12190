"""A handler for requests, which training copies beside the model."""
