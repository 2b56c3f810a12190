"""How much the network moved: the counters that Linux keeps for each interface.

Shared by the programs of this folder; needs the standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def received(environ: Mapping[str, str] = os.environ, table: Path = Path("/proc/net/dev")) -> int | None:
    """Count the bytes that the job's interface received so far; ``None`` outside a job, and where nothing counts them.

    The interface is the one that SageMaker names in ``SM_NETWORK_INTERFACE_NAME``. Where hosts are processes of one
    machine it is the loopback interface: there it counts what all hosts, and all else on the machine, send each
    other, and what shared memory takes does not pass it.
    """
    interface = environ.get("SM_NETWORK_INTERFACE_NAME")
    if not interface or not table.exists():
        return None
    for line in table.read_text().splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == interface:
            return int(counters.split()[0])
    return None
