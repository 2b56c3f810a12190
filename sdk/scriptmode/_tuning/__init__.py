"""Tuning jobs: the public `Tuner`, what it searches for each estimator, and the handle of a started one."""
