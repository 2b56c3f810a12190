"""Training jobs on a Slurm cluster: an engine of the local platform, whose hosts are nodes of the cluster.

* ``addresses``, ``environment``, ``steps``: what a host on a node is given, and the ``srun`` that starts it.
"""
