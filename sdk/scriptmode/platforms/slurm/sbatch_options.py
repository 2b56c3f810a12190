"""The options of sbatch(1) that a job sets by itself, and those of a batch script's header. Pure.

All others are the user's: they go to sbatch as they are. The names are long ones, with "_" for "-".
"""

from __future__ import annotations

import shlex

_DIRECTIVE = "#SBATCH"
#: Letters from which on the beginning of an option's name counts as that option: sbatch accepts unique ones.
_SHORTEST_PREFIX = 3
#: Long names of short ones (sbatch(1)).
LONG_NAMES = {
    "A": "account", "B": "extra_node_info", "C": "constraint", "D": "chdir", "F": "nodefile", "G": "gpus", "H": "hold",
    "J": "job_name", "L": "licenses", "M": "clusters", "N": "nodes", "O": "overcommit", "S": "core_spec",
    "a": "array", "b": "begin", "c": "cpus_per_task", "d": "dependency", "e": "error", "i": "input", "k": "no_kill",
    "m": "distribution", "n": "ntasks", "o": "output", "p": "partition", "q": "qos", "s": "oversubscribe", "t": "time",
    "w": "nodelist", "x": "exclude", "Q": "quiet", "V": "version", "W": "wait", "h": "help", "u": "usage",
    "v": "verbose",
}  # fmt: skip
_IMAGE = ("the image is an argument of the estimator", "give it image_uri")
_HOSTS = "the hosts of a job are its nodes, one each"
_LOGS = ("the logs are in the job's folder: scriptmode logs", "leave it out")
_OUTPUT = ("the output of sbatch is read by scriptmode", "leave it out")
#: Options that the job sets by itself or cannot have, with the reason and what to use instead.
REFUSED = {
    "array": ("a job is one training", "start several, or use Tuner"),
    "clusters": ("a job is followed on one cluster", "log in to that cluster, or set SLURM_CONF to its configuration"),
    # Also options of the plug-in pyxis, and of srun.
    **{f"container{part}": _IMAGE for part in ("", "_id", "_image", "_mounts", "_name", "_workdir")},
    "cpu_bind": ("it is an option of srun", "give cpus_per_task: hosts and their threads use that many CPUs"),
    "error": _LOGS,
    "gid": ("jobs run as the user who starts them", "leave it out"),
    "help": ("it starts no job", "run sbatch --help"),
    "ignore_pbs": ("the batch script has no directives of PBS", "leave it out"),
    "input": ("the job's agent reads no input", "use the channels of fit(inputs)"),
    "job_name": ("it is the training job's name", "use fit(job_name=...) or base_job_name"),
    "no_kill": ("the hosts of a job end together", "leave it out"),
    "no_requeue": ("use_spot_instances and max_retry_attempts decide it", "leave both out"),
    "nodes": (_HOSTS, "give the estimator instance_count"),
    "ntasks": (_HOSTS, "give the estimator instance_count, and MPI(processes_per_host=...)"),
    **{f"ntasks_per_{part}": (_HOSTS, "use MPI(processes_per_host=...)") for part in ("core", "gpu", "node", "socket")},
    **dict.fromkeys(("open_mode", "output"), _LOGS),
    **dict.fromkeys(("parsable", "quiet"), _OUTPUT),
    "requeue": (
        "it is set for jobs that may be preempted",
        "give the estimator max_retry_attempts, or use_spot_instances=True and max_wait",
    ),
    "test_only": ("it starts no job", "use plan(), or scriptmode plan"),
    "time_min": ("a job has one time limit", "give the estimator max_run, or time"),
    "uid": ("jobs run as the user who starts them", "leave it out"),
    "usage": ("it starts no job", "run sbatch --usage"),
    "verbose": _OUTPUT,
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


def refused_name(name: str) -> str:
    """Return the option that a job sets by itself, of which a name is the whole or the beginning; "" for any other."""
    if name in REFUSED:
        return name
    is_whole = name in LONG_NAMES.values() or len(name) < _SHORTEST_PREFIX
    return "" if is_whole else next((each for each in REFUSED if each.startswith(name)), "")


def long_name(given: object) -> str:
    """Return an option's name with "_" for "-"; the long one of a short name."""
    name = str(given).lstrip("-").replace("-", "_")
    return LONG_NAMES.get(name, name)


def read_header(script: str) -> dict[str, str | bool]:
    """Return the options in the header of a batch script, True for one without a value.

    As for sbatch, the header ends with the first command. Raises ``ValueError`` for a line of another form.
    """
    found: dict[str, str | bool] = {}
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        words = shlex.split(line[len(_DIRECTIVE) :], comments=True) if line.startswith(_DIRECTIVE) else []
        while words:
            word = words.pop(0)
            name, separator, value = word.partition("=")
            if not word.startswith("-") or not word.lstrip("-")[:1].isalpha():
                raise ValueError(f"{line!r} has {word!r}, which is not an option")
            if not word.startswith("--"):
                name, value = word[:2], word[2:]
                separator = value
            # A value may be a negative number.
            is_value = words and (words[0][0] != "-" or not words[0].lstrip("-")[:1].isalpha())
            if is_value and not separator:
                separator = value = words.pop(0)
            found[long_name(name)] = value if separator else True
    return found
