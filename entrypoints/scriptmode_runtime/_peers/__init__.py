"""Connections between the hosts of one job: each learns that all are ready, that all ended, or that one failed."""
