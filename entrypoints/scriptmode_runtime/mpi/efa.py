"""Variables for Open MPI's and NCCL's transports on machines with an Elastic Fabric Adapter (EFA). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Instance types with an adapter in SageMaker's training toolkit; the second list supports GPUDirect RDMA.
_ADAPTER = ("ml.g4dn.8xlarge", "ml.g4dn.12xlarge", "ml.g5.48xlarge", "ml.p3dn.24xlarge")
_DIRECT = (
    "ml.p4d.24xlarge",
    "ml.p4de.24xlarge",
    "ml.p5.48xlarge",
    "ml.p5e.48xlarge",
    "ml.p6e-gb200.36xlarge",
    "ml.trn1.32xlarge",
)
#: Newer families in which every size has an adapter ("Elastic Fabric Adapter", Amazon EC2 User Guide).
_NEWER = ("ml.p5en.", "ml.p6-", "ml.p6e-", "ml.trn1n.", "ml.trn2.")


def exports(instance_type: str) -> Iterator[str]:
    """Yield the variables of every rank on an instance type, as ``NAME=value``."""
    known = instance_type in _ADAPTER or instance_type in _DIRECT
    if known or instance_type.startswith(_NEWER):
        yield "FI_PROVIDER=efa"
    if known:
        yield "NCCL_PROTO=simple"
    if instance_type in _DIRECT:
        yield "FI_EFA_USE_DEVICE_RDMA=1"
