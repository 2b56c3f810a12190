"""Network traffic: the counters that Linux keeps for each interface.

Shared by the programs in this directory; needs only the standard library.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def received(environ: Mapping[str, str] = os.environ, table: Path = Path("/proc/net/dev")) -> int | None:
    """Return the bytes that the job's interface received so far; ``None`` outside a job or if there is no counter.

    The interface is the one that SageMaker names in ``SM_NETWORK_INTERFACE_NAME``. If hosts are processes of one
    machine, it is the loopback interface, which counts the traffic of all hosts and of all other programs on the
    machine, but not exchanges in shared memory.
    """
    interface = environ.get("SM_NETWORK_INTERFACE_NAME")
    if not interface or not table.exists():
        return None
    for line in table.read_text().splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == interface:
            return int(counters.split()[0])
    return None
