"""The program that mpirun runs in place of ssh: sends the command to the launcher, waits for its end.

``rsh.py <socket> <host> <word> ...`` runs for each host, by an interpreter without ``site``: it imports little.
"""

import json
import socket
import sys

#: The exit code of ssh for a host that cannot be reached.
_UNREACHED = 255


def main(path: str, host: str, *words: str) -> int:
    """Send the command to the launcher that listens at ``path``; return the command's exit code."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as launcher:
            launcher.connect(path)
            request = {"type": "start", "host": host, "command": " ".join(words)}
            launcher.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(launcher.makefile("rb").readline() or b"{}")
    except (OSError, ValueError) as error:
        answer = {"error": f"the launcher cannot be reached to start a daemon: {error}"}
    if answer.get("error"):
        sys.stderr.write(f"scriptmode: {answer['error']}\n")
    return int(answer.get("status", _UNREACHED))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
