"""One MPI rank: becomes the user's program, with the variables and the folder of the host it belongs to."""

from __future__ import annotations

import os
import sys

from scriptmode_runtime import contract, environment, system, user_code
from scriptmode_runtime.errors import RuntimeFailure
from scriptmode_runtime.strategies.mpi import processes_per_host

_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
#: What a shell answers for a program that cannot be started.
_CANNOT_START = 127


def main() -> int:
    """Become the program; return only where that cannot be."""
    try:
        system.die_with_parent()
        base_dir = os.environ.get(contract.BASE_DIR_VARIABLE, contract.DEFAULT_BASE_DIR)
        here = environment.read(base_dir, os.environ)
        if here.cluster.single_machine:
            host = here.cluster.hosts[int(os.environ.get(contract.RANK_VARIABLE, "0")) // processes_per_host(here)]
            here = environment.read(host.base_dir, {**os.environ, contract.BASE_DIR_VARIABLE: host.base_dir})
        command = user_code.command(here)
        os.chdir(command.cwd)
        env = {**os.environ, **command.env, **_gpu(here), contract.BASE_DIR_VARIABLE: here.base_dir}
        if os.isatty(1):
            # Open MPI gives its ranks a terminal, where Python writes whole lines. Unbuffered it writes
            # word by word, and Open MPI 4 puts its tag before each of them.
            env.pop("PYTHONUNBUFFERED", None)
        # This host's own words, not those of the host that runs mpirun: paths in them are this host's.
        os.execvpe(command.argv[0], command.argv, env)  # noqa: S606 - never a shell
    except (RuntimeFailure, OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"scriptmode: {error}\n")
    return _CANNOT_START


def _gpu(here: environment.TrainingEnvironment) -> dict[str, str]:
    """Let the rank see the GPU of its local rank alone, where the job asks for that.

    It is for scripts that know nothing of GPUs. Horovod's own examples choose theirs among all that they see.
    """
    gpus = os.environ.get(_VISIBLE_GPUS) or ",".join(map(str, range(here.machine.gpus)))
    if not gpus or not environment.enabled(here.framework_parameters.get(contract.MPI_BIND_GPUS)):
        return {}
    names = gpus.split(",")
    return {_VISIBLE_GPUS: names[int(os.environ.get(contract.LOCAL_RANK_VARIABLE, "0")) % len(names)]}


if __name__ == "__main__":
    sys.exit(main())
