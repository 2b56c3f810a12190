"""Variables with which PyTorch and JAX find the ranks of a job, in addition to Open MPI's own. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_runtime.cluster import Cluster

_JAX_COORDINATOR, _JAX_BINDS = "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS"
#: JAX takes its processes from Open MPI's variables where this one is set (jax/_src/clusters/ompi_cluster.py).
#: ``mpirun`` of Open MPI 4 sets it and that of 5 does not; no library of 5 reads it.
_JAX_DETECTS = "OMPI_MCA_orte_hnp_uri"
#: With this variable of Open MPI 5's ``mpirun``, JAX 0.12 asks mpi4py instead. Only ``mpirun`` itself reads it.
_JAX_REQUIRES_MPI4PY = "OMPI_VERSION"


def set_world(env: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    """Return a rank's variables with those of `contract.WORLD_VARIABLES` that it does not have, and what JAX needs.

    All ranks agree on the ports of the first host, which are reserved for the job. A port is bound by rank 0, if its
    program asks for that.
    """
    first = cluster.lead
    ranks = {name: env[own] for name, own in contract.OPEN_MPI_VARIABLES.items() if own in env}
    coordinator = first.endpoint(contract.JAX_PORT)
    world = {
        # By default JAX listens at every address of the machine.
        **({_JAX_BINDS: coordinator} if cluster.single_machine and _JAX_COORDINATOR not in env else {}),
        **ranks,
        "MASTER_ADDR": first.address,
        "MASTER_PORT": str(first.ports[contract.TORCH_PORT]),
        _JAX_COORDINATOR: coordinator,
    }
    if _JAX_DETECTS not in env:
        scheme = "tcp6" if ":" in first.address else "tcp"
        world[_JAX_DETECTS] = f"0.0;{scheme}://{coordinator}"
        env = {name: value for name, value in env.items() if name != _JAX_REQUIRES_MPI4PY}
    return {**world, **env}
