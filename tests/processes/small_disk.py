"""``train`` with its root folder on a disk of its own, a very small one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from processes.launchers import ENTRYPOINTS

#: Only this process and those below it see the disk; it goes with the last of them.
_SCRIPT = """
disk=$1 size=$2 made=$3 shown=$4 python=$5 filled=$6
mount -t tmpfs -o "size=$size" tmpfs "$disk" && cp -R "$made"/. "$disk" || exit 99
if [ "$filled" ]; then cat /dev/zero >"$disk/filled" 2>/dev/null; fi
if [ "$filled" = meanwhile ]; then (until [ -e "$shown/ends" ]; do sleep 0.1; done; sleep 0.5; rm "$disk/filled") & fi
"$python" -m scriptmode_runtime
code=$?
ls -A "$disk/output" >"$shown/names"
cp "$disk/output/failure" "$disk/output/failure.json" "$shown" 2>/dev/null
df --output=avail -B1 "$disk" | tail -n 1 >"$shown/free"
exit $code
"""


class Ran:
    """What ``train`` left on its disk, and said."""

    def __init__(self, done, shown):
        self.code = done.returncode
        self.output = done.stdout
        self.names = (shown / "names").read_text().split()
        self.free = int((shown / "free").read_text())
        self.failure = (shown / "failure").read_text() if (shown / "failure").exists() else None
        self.record = json.loads((shown / "failure.json").read_text()) if (shown / "failure.json").exists() else None


def train_on_small_disk(base, size="2m", *, filled=False, **variables):
    """Run ``train`` with a copy of the folder ``base`` on a disk of ``size``, which may be ``filled`` before.

    With "meanwhile" it is not full any more half a second after the script created the file ``ends`` in ``shown``.
    """
    base = Path(base)
    disk, shown = base.with_name("disk"), base.with_name("shown")
    disk.mkdir()
    shown.mkdir()
    env = {"PATH": os.environ["PATH"], "SAGEMAKER_BASE_DIR": str(disk), "PYTHONPATH": str(ENTRYPOINTS), **variables}
    words = (str(disk), size, str(base), str(shown), sys.executable, str(filled or ""))
    done = subprocess.run(
        [*_namespace(), "sh", "-c", _SCRIPT, "sh", *words],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode != 99, f"no disk could be mounted: {done.stdout}"
    return Ran(done, shown)


def run_on_small_disk(disk, options, *words):
    """Run a program with a tmpfs of these options at a directory, which is there for the program alone."""
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
    return subprocess.run(
        [*_namespace(), "sh", "-c", script, "sh", options, str(disk), *words],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def _namespace():
    """Give what lets a process mount: a mount namespace, for others than root inside a user namespace."""
    for words in (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount")):
        probe = [*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return words
    raise AssertionError("a small disk needs root or user namespaces (sysctl user.max_user_namespaces)")
