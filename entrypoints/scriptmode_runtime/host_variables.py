"""Variables that all processes of a host get, so that its site's settings let the hosts train together. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_runtime.environment import TrainingEnvironment

#: The numbers of threads of OpenMP, and of TensorFlow within and between operations (process_util.cc, local_device.cc).
_OPENMP, _INTRA, _INTER = "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
#: With one thread between operations a parameter server waits for ever for another that waits for it.
_LEAST_INTER = 2


def host_variables(here: TrainingEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, for a host that has those of ``environ``."""
    return _threads(here, environ)


def _threads(here: TrainingEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the numbers of threads where programs would not choose them by the host's CPUs, or choose a single one.

    The ranks of a host share its CPUs. A variable that is set stays.
    """
    machine = here.machine
    if machine.cpus > 1 and not machine.is_limited:
        return {}
    ranks = 1
    if here.strategy == contract.MPI:
        from scriptmode_runtime.strategies.mpi import processes_per_host

        ranks = processes_per_host(here)
    threads = max(1, machine.cpus // ranks)
    found = {_OPENMP: threads, _INTRA: threads, _INTER: max(threads, _LEAST_INTER)}
    return {name: str(count) for name, count in found.items() if name not in environ}
