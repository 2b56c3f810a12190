"""``scriptmode jobs``: the commands of ``gcloud ml-engine jobs``, for this machine and Amazon SageMaker.

`jobs` and `training` are the commands; the other modules translate Cloud ML Engine's settings for them.
"""
