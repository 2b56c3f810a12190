"""The options of sbatch(1) that a job sets by itself. Pure.

All others are the user's: they go to sbatch as they are. The names are long ones, with "_" for "-".
"""

from __future__ import annotations

#: Options that the job sets by itself or cannot have.
REFUSED = frozenset({
    "array", "clusters", "error", "help", "input", "job_name", "no_kill", "no_requeue", "nodes", "ntasks",
    "ntasks_per_core", "ntasks_per_gpu", "ntasks_per_node", "ntasks_per_socket", "open_mode", "output", "parsable",
    "quiet", "requeue", "test_only", "time_min", "usage", "verbose", "version", "wait", "wrap",
})  # fmt: skip
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


def normalize_name(given: object) -> str:
    """Return an option's name with "_" for "-"."""
    return str(given).lstrip("-").replace("-", "_")
