"""What mpirun runs in ssh's place, and sshd for it: hands the command to this host's launcher, and waits for its end.

``rsh.py <socket> <host> <word> ...`` from mpirun, ``rsh.py <socket>`` from sshd (``SSH_ORIGINAL_COMMAND``). Run for
each host by an interpreter without ``site``, so it imports next to nothing.
"""

import json
import os
import socket
import sys

#: What ssh itself answers when it could not reach the host.
_UNREACHED = 255


def main(path: str, host: str = "", *words: str) -> int:
    """Ask the launcher that listens at ``path``; give the command's exit code."""
    command = " ".join(words) or os.environ.get("SSH_ORIGINAL_COMMAND", "")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as launcher:
            launcher.connect(path)
            request = {"type": "start", "host": host, "command": command}
            launcher.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(launcher.makefile("rb").readline() or b"{}")
    except (OSError, ValueError) as error:
        answer = {"error": f"the launcher cannot be asked to start a daemon: {error}"}
    if answer.get("error"):
        sys.stderr.write(f"scriptmode: {answer['error']}\n")
    return int(answer.get("status", _UNREACHED))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
