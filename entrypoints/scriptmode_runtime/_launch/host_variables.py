"""Variables that all processes of a host get, so that its site's settings let the hosts train together. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment

#: Hosts that are reached without a proxy. gRPC reads its own variable, or else the first, and knows neither "*" nor
#: networks nor blanks there (http_proxy.cc); to other clients "*" by itself is every host.
_GRPC = "no_grpc_proxy"
_UNPROXIED = ("no_proxy", "NO_PROXY", _GRPC)
_LOOPBACK = ("localhost", "127.0.0.1")
#: The host of an endpoint in the JSON text of ``TF_CONFIG``, without the brackets of an IPv6 address.
_ENDPOINT = re.compile(r'"\[?([^"\[\]]+)\]?:\d+"')
#: The numbers of threads of OpenMP, and of TensorFlow within and between operations (process_util.cc, local_device.cc).
_OPENMP, _INTRA, _INTER = "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
#: With one thread between operations a parameter server waits for ever for another that waits for it.
_LEAST_INTER = 2


def host_variables(here: TrainingEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, for a host that has those of ``environ``."""
    return {**_unproxied(here, environ), **_threads(here, environ)}


def _unproxied(here: TrainingEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of hosts without a proxy: those that are set, and the cluster's as it spells them."""
    cluster = list(dict.fromkeys((*_names(here), *_LOOPBACK)))
    variables = {}
    for name in _UNPROXIED:
        given = environ.get(name) or environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        is_complete = given == "*" and name != _GRPC
        variables[name] = given if is_complete else ",".join(filter(None, (given, *cluster)))
    return variables


def _names(here: TrainingEnvironment) -> Iterator[str]:
    yield from map(str, here.resource_config["hosts"])
    for host in here.cluster.hosts:
        yield from (host.name, host.address)
    yield from _ENDPOINT.findall(here.inherited.get("TF_CONFIG", ""))


def _threads(here: TrainingEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the numbers of threads where programs would not choose them by the host's CPUs, or choose a single one.

    The ranks of a host share its CPUs. A variable that is set stays.
    """
    machine = here.machine
    if machine.cpus > 1 and not machine.is_limited:
        return {}
    ranks = 1
    if here.strategy == contract.MPI:
        from scriptmode_runtime._strategies.mpi import processes_per_host

        ranks = processes_per_host(here)
    threads = max(1, machine.cpus // ranks)
    counts = {_OPENMP: threads, _INTRA: threads, _INTER: max(threads, _LEAST_INTER)}
    return {name: str(count) for name, count in counts.items() if name not in environ}
