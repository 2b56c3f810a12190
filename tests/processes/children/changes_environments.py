"""Runs jobs in the directory of the first argument whose scripts try to change a module of an environment."""

import os
import sys
from pathlib import Path

from fakes.local_jobs import LocalJobs

SCRIPT = r"""
import glob, os, subprocess, sys

folder = os.environ["ENVIRONMENTS"]
(module,) = glob.glob(glob.escape(folder) + "/*/lib/*/site-packages/extra.py")
before = open(module).read()
WRITE = 'chmod u+w "$module"; echo >>"$module"'
OPEN = 'mount -o remount,bind,rw "$folder" || umount -l "$folder"; ' + WRITE
ways = [
    WRITE,
    f"unshare -Urm sh -c '{OPEN}'",
    f"setpriv --bounding-set=-sys_admin sh -c '{OPEN}'",
    'ln "$module" /tmp/hard-link && ' + WRITE.replace("$module", "/tmp/hard-link"),
]
if os.getuid():
    # In its own mount namespace, root may do these.
    parent = os.getppid()
    ways += [OPEN, WRITE.replace("$module", f"/proc/{parent}/root$module"), f"nsenter -t {parent} -U -m sh -c '{OPEN}'"]
for way in ways:
    variables = {**os.environ, "module": module, "folder": folder}
    subprocess.run(["sh", "-c", way], env=variables, capture_output=True)
print("changed", open(module).read() != before)
"""
home = Path(sys.argv[1])
os.environ["PIP_NO_INDEX"] = "1"
os.environ["ENVIRONMENTS"] = str(home / "data dir" / "environments")
(home / "own.py").write_text(SCRIPT)
jobs = LocalJobs(home)
own = {"TrainingInputMode": "File", "ContainerEntrypoint": ["python", str(home / "own.py")]}
required = {"files": {"requirements.txt": f"{home}/extra-1-py3-none-any.whl\n"}}
for options in (required, required, {}, {"more": {"AlgorithmSpecification": own}}):
    description = jobs.run(SCRIPT, **options)
    print(*jobs.lines(description["TrainingJobName"]), sep="\n")
jobs.close()
