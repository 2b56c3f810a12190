"""``scriptmode jobs``: the commands of ``gcloud ml-engine jobs``, for this machine and Amazon SageMaker.

`jobs` has the commands. `settings` and `package` translate Cloud ML Engine's job settings and Python packages to the
arguments of an estimator.
"""
