"""The options of sbatch: which ones users may set, and which ones the job sets by itself. Pure.

The names are those of sbatch(1) of Slurm 21.08 to 25.05, with "_" for "-".
"""

from __future__ import annotations

#: Options without a value: True adds the option, False leaves it out.
FLAGS = frozenset(
    {"contiguous", "consolidate_segments", "hold", "overcommit", "oversubscribe", "reboot", "spread_job", "stepmgr",
     "use_min_nodes"}
)  # fmt: skip
#: Options whose value may be left out: True adds the option alone.
OPTIONAL_VALUES = frozenset({"exclusive", "get_user_env", "nice", "propagate"})
#: Options with a value.
VALUES = frozenset(
    {"account", "acctg_freq", "batch", "bb", "bbf", "begin", "chdir", "cluster_constraint", "comment", "constraint",
     "core_spec", "cores_per_socket", "cpu_freq", "cpus_per_gpu", "cpus_per_task", "deadline", "delay_boot",
     "dependency", "distribution", "exclude", "export", "export_file", "extra", "extra_node_info", "gpu_bind",
     "gpu_freq", "gpus", "gpus_per_node", "gpus_per_socket", "gpus_per_task", "gres", "gres_flags", "hint",
     "kill_on_invalid_dep", "licenses", "mail_type", "mail_user", "mcs_label", "mem", "mem_bind", "mem_per_cpu",
     "mem_per_gpu", "mincpus", "network", "nodefile", "nodelist", "partition", "power", "prefer", "priority",
     "profile", "qos", "reservation", "resv_ports", "segment", "signal", "sockets_per_node", "switches",
     "thread_spec", "threads_per_core", "time", "tmp", "tres_bind", "tres_per_task", "wait_all_nodes", "wckey"}
)  # fmt: skip
KNOWN = FLAGS | OPTIONAL_VALUES | VALUES
#: Long names of short ones (sbatch(1)).
LONG_NAMES = {
    "A": "account", "B": "extra_node_info", "C": "constraint", "D": "chdir", "F": "nodefile", "G": "gpus", "H": "hold",
    "J": "job_name", "L": "licenses", "M": "clusters", "N": "nodes", "O": "overcommit", "S": "core_spec",
    "a": "array", "b": "begin", "c": "cpus_per_task", "d": "dependency", "e": "error", "i": "input", "k": "no_kill",
    "m": "distribution", "n": "ntasks", "o": "output", "p": "partition", "q": "qos", "s": "oversubscribe", "t": "time",
    "w": "nodelist", "x": "exclude",
}  # fmt: skip
_IMAGE = ("the image is an argument of the estimator", "give it image_uri")
_HOSTS = "the hosts of a job are its nodes, one each"
_LOGS = "the logs are in the job's folder: scriptmode logs"
#: Options that the job sets by itself or cannot have, with the reason and what to use instead.
REFUSED = {
    "array": ("a job is one training", "start several, or use Tuner"),
    "clusters": ("a job is followed on one cluster", "log in to that cluster, or set SLURM_CONF to its configuration"),
    "container": _IMAGE,
    "container_id": _IMAGE,
    # Options of the plug-in pyxis, and of srun.
    **dict.fromkeys(("container_image", "container_mounts", "container_name", "container_workdir"), _IMAGE),
    "cpu_bind": ("it is an option of srun", "give cpus_per_task: hosts and their threads use that many CPUs"),
    "error": (_LOGS, "leave it out"),
    "gid": ("jobs run as the user who starts them", "leave it out"),
    "help": ("it starts no job", "run sbatch --help"),
    "ignore_pbs": ("the batch script has no directives of PBS", "leave it out"),
    "input": ("the job's agent reads no input", "use the channels of fit(inputs)"),
    "job_name": ("it is the training job's name", "use fit(job_name=...) or base_job_name"),
    "no_kill": ("the hosts of a job end together", "leave it out"),
    "no_requeue": ("use_spot_instances decides it", "leave use_spot_instances out"),
    "nodes": (_HOSTS, "give the estimator instance_count"),
    "ntasks": (_HOSTS, "give the estimator instance_count, and MPI(processes_per_host=...)"),
    "ntasks_per_core": (_HOSTS, "use MPI(processes_per_host=...)"),
    "ntasks_per_gpu": (_HOSTS, "use MPI(processes_per_host=...)"),
    "ntasks_per_node": (_HOSTS, "use MPI(processes_per_host=...)"),
    "ntasks_per_socket": (_HOSTS, "use MPI(processes_per_host=...)"),
    "open_mode": (_LOGS, "leave it out"),
    "output": (_LOGS, "leave it out"),
    "parsable": ("the output of sbatch is read by scriptmode", "leave it out"),
    "quiet": ("the output of sbatch is read by scriptmode", "leave it out"),
    "requeue": ("it is set for jobs that may be preempted", "give the estimator use_spot_instances=True and max_wait"),
    "test_only": ("it starts no job", "use plan(), or scriptmode plan"),
    "time_min": ("a job has one time limit", "give the estimator max_run, or time"),
    "uid": ("jobs run as the user who starts them", "leave it out"),
    "usage": ("it starts no job", "run sbatch --usage"),
    "verbose": ("the output of sbatch is read by scriptmode", "leave it out"),
    "version": ("it starts no job", "run sbatch --version"),
    "wait": ("fit waits for the job", "use fit(wait=...)"),
    "wrap": ("the script is an argument of the estimator", "give it entry_point"),
}
#: Variables of sbatch whose names do not follow from the option's: SBATCH_TIMELIMIT is --time (sbatch(1)).
_VARIABLES = {
    "array": ("SBATCH_ARRAY_INX",),
    "clusters": ("SBATCH_CLUSTERS", "SLURM_CLUSTERS"),
    "hint": ("SBATCH_HINT", "SLURM_HINT"),
    "mem": ("SBATCH_MEM_PER_NODE",),
    "switches": ("SBATCH_REQ_SWITCH", "SBATCH_WAIT4SWITCH"),
    "time": ("SBATCH_TIMELIMIT",),
    "verbose": ("SBATCH_DEBUG",),
}


def option_variables(name: str) -> tuple[str, ...]:
    """Return the environment variables that sbatch reads for an option: they override what the script says."""
    return _VARIABLES.get(name, (f"SBATCH_{name.upper()}",))
