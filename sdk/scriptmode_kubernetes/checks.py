"""The checks of ``scriptmode doctor --platform kubernetes``: each returns what it found, and the next step or ""."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from scriptmode.errors import ScriptmodeError
from scriptmode_kubernetes.engine import open_api
from scriptmode_kubernetes.manifests import RIGHTS
from scriptmode_kubernetes.settings import SETTINGS_VARIABLE, parse_settings

_SCRIPT = """\
import time
for step in range(10):
    print("step", step, time.time(), flush=True)
    time.sleep(0.1)
"""
#: Seconds for the pod to get a node and its image.
_WAIT_SECONDS = 600


def find_cluster() -> tuple[str, str]:
    """Query the API for its version."""
    api = open_api(parse_settings({}, os.environ))
    return f"Kubernetes {api.version()} answers, and pods are created in the namespace {api.namespace}", ""


def find_rights() -> tuple[str, str]:
    """Query the API for the rights that the engine needs."""
    api = open_api(parse_settings({}, os.environ))
    missing = [f"{verb} {kind}" for kind, verbs in RIGHTS.items() for verb in verbs if not api.may(verb, kind)]
    if missing:
        return f"it may not {', '.join(missing)}", "give it the Role of: scriptmode serve manifests"
    return f"it may use {', '.join(RIGHTS)}", ""


def find_image() -> tuple[str, str]:
    """Return the image that hosts have by default."""
    image = parse_settings({}, os.environ).image
    example = '{"image": "registry/name:tag"}'
    return (f"{image}", "") if image else ("no image is given", f"set {SETTINGS_VARIABLE}, such as {example!r}")


def run_job() -> tuple[str, str]:
    """Run a job of ten steps in a pod, and return how long its parts took."""
    from scriptmode import Estimator
    from scriptmode_kubernetes.platform import Kubernetes

    folder = tempfile.mkdtemp(prefix="scriptmode-doctor-")
    try:
        script = Path(folder, "train.py")
        script.write_text(_SCRIPT, encoding="utf-8")
        platform = Kubernetes(data_dir=Path(folder, "data"))
        begun = time.time()
        job = Estimator(
            entry_point=str(script), instance_type="kubernetes", platform=platform, max_run=_WAIT_SECONDS
        ).fit(wait=False)
        try:
            job.wait(logs=False, timeout=_WAIT_SECONDS)
        except ScriptmodeError as error:
            job.stop()
            return f"the job failed: {error.message}", error.advice or "see that its image has train: scriptmode image"
        ended = time.time()
        started = next(float(each.message.split()[2]) for each in job.logs() if each.message.startswith("step 0 "))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return f"a pod ran the script {started - begun:.1f} s after the start, and ended {ended - started:.1f} s later", ""


#: By the names of the checks, in their order; each needs those before it.
CHECKS = {"cluster": find_cluster, "rights": find_rights, "pod image": find_image, "trial pod": run_job}
