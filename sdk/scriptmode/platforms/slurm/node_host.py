"""``python -m scriptmode.platforms.slurm.node_host JOB ADDRESS INTERFACE PORT ...``: a host whose node shares no files.

It runs once on each node, as one task of a step. The task's number says which host it is, and which of the ports its
relay has, on the login node. The host's directory is on the node's own disk, in TMPDIR, until the host ends.
"""

from __future__ import annotations

import os
import sys

from scriptmode.platforms.local.remote.connection import run_host
from scriptmode.platforms.slurm import addresses
from scriptmode_runtime.files import scratch

#: The variable with the secret of the job's connections.
SECRET_VARIABLE = "SCRIPTMODE_CONNECTION"  # noqa: S105 - its name


def main(arguments: list[str]) -> int:
    """Run the host to its end; return 0, because the job's agent knows how it ended."""
    job, address, interface, *ports = arguments
    found = addresses.list_interfaces()
    own = addresses.choose_address(interface, found) if interface else addresses.find_own_address(address)
    if not own:
        sys.stderr.write(f"scriptmode: this node has no address in {interface!r}\n")
        return 1
    secret = os.environ.pop(SECRET_VARIABLE)
    with scratch.directory(os.environ.get("TMPDIR", "")) as directory:
        port = int(ports[int(os.environ["SLURM_PROCID"])])
        run_host((f"{directory}/jobs/{job}", own), (address, port), secret)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
