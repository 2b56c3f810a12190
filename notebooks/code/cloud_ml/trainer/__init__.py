"""A training program as Cloud ML Engine takes it: a package, run by its module's name."""
