"""Training jobs on a Slurm cluster: an engine of the local platform, whose hosts are nodes of the cluster.

* ``slurm_platform``: `Slurm`, the platform object.
* ``slurm_settings``: what it is given.
* ``commands``: the commands of Slurm, and their output as values.
* ``batch_script``: the script that sbatch gets.
* ``slurm_agent``: where the agent of a job is, and why Slurm ends it.
* ``problems``: failures of these commands and pending reasons, in their words.
* ``addresses``, ``steps``: what a host on a node is given, and the ``srun`` that starts it.
"""
