"""``scriptmode jobs``: the commands of ``gcloud ml-engine jobs``, for this machine and Amazon SageMaker.

The modules `jobs` and `training` are the commands. `config`, `machines` and `package` translate Cloud ML Engine's job
settings, machine types and Python packages to the arguments of an estimator.
"""
