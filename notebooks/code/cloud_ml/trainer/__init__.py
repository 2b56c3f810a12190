"""A training program for Cloud ML Engine: a package that is started by the name of its module."""
