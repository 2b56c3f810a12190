"""AWS: sessions and clients, their errors, and the services beside training."""
