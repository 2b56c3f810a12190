"""Run a case by the toolkit's ``train`` and by ours, in a folder of the same name, and give what each was seen to do."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from contract.toolkit.case import RECORDER, within
from processes.launchers import ENTRYPOINTS
from references import environment

#: setuptools is what packages are built with; the adapter asks for versions that are older than the toolkit.
TOOLKIT = ("sagemaker-training==5.1.4", "setuptools>=70.1,<81")
ADAPTER = ("sagemaker-tensorflow-training==20.5.0",)
#: What a shell leaves in its children's environment, and Python where the locale is not set.
OF_SHELLS = {"_", "SHLVL", "PWD", "OLDPWD"}
AT_ONCE = 2

Record = dict[str, Any]


def reference():
    """Give the folder of the toolkit's programs; the toolkit is installed at the first run, in half a minute."""
    return environment(*TOOLKIT, alone=ADAPTER)


def commands():
    """Give both launchers' commands. They run with one interpreter, which the script sees."""
    programs = reference()
    return {"theirs": (str(programs / "train"),), "ours": (str(programs / "python"), "-m", "scriptmode_runtime")}


def variables(case, folder):
    own = {name: within(value, folder) for name, value in case.variables.items()}
    path = filter(None, (str(ENTRYPOINTS), str(RECORDER.parent), own.pop("PYTHONPATH", "")))
    return {
        "PATH": os.defpath, "HOME": str(folder / "home"), "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(path),
        "AWS_EC2_METADATA_DISABLED": "true",
        # The toolkit waits a quarter of an hour for host names that do not resolve, but for this.
        "SM_STUDIO_LOCAL_MODE": "true", "SAGEMAKER_BASE_DIR": str(folder / "ml"),
        "PYTHON": str(reference() / "python"), "RECORDER": str(RECORDER), "RECORD": str(folder / "record.json"),
        **own,
    }  # fmt: skip


def run(case, command, folder):
    case.write(folder)
    given = variables(case, folder)
    limit = ("taskset", "-c", f"0-{case.cpus - 1}") if case.cpus else ()
    done = subprocess.run(
        (*limit, *command),
        cwd=folder / "home",
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    (folder / "log").write_bytes(done.stdout)
    return {
        "given": given, "exit": done.returncode, "failure": (folder / "ml/output/failure").exists(),
        "success": (folder / "ml/output/success").exists(), "script": _script(folder),
    }  # fmt: skip


def _script(folder):
    """Give what the script saw; None if it did not start."""
    if not (folder / "record.json").exists():
        return None
    record = json.loads((folder / "record.json").read_text())
    record["env"] = {name: value for name, value in record["env"].items() if name not in OF_SHELLS}
    if "TF_CONFIG" in record["env"]:
        # An object to TensorFlow, whatever the order of its members.
        record["env"]["TF_CONFIG"] = json.loads(record["env"]["TF_CONFIG"])
    return record


def run_both(case, folder):
    """Run both launchers; what they left stands in ``theirs`` and ``ours`` below the folder."""
    folder.mkdir()
    records = {}
    for who, command in commands().items():
        # One path for both: values that hold it can be compared.
        records[who] = run(case, command, folder / "host")
        shutil.move(folder / "host", folder / who)
    return records


def run_all(cases, folder):
    """Run every case by both, a few at once; give the records by the case's id."""
    listed = list(cases)
    folders = [folder / str(number) for number in range(len(listed))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip([case.id for case in listed], pool.map(run_both, listed, folders)))
