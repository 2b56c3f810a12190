"""The checks of ``scriptmode doctor --platform kubernetes``: the rights that the engine needs, and a job in a pod."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from scriptmode.errors import PlatformError, ScriptmodeError
from scriptmode_kubernetes._engine.engine import open_api
from scriptmode_kubernetes._engine.manifests import RIGHTS
from scriptmode_kubernetes._engine.settings import parse_settings

#: Seconds for the pod to get a node and its image.
_WAIT_SECONDS = 600


def find_cluster() -> str:
    """Query the API for its version and for the rights that the engine needs."""
    api = open_api(parse_settings({}, os.environ))
    version = api.version()
    missing = [f"{verb} {kind}" for kind, verbs in RIGHTS.items() for verb in verbs if not api.may(verb, kind)]
    if missing:
        raise PlatformError(f"it may not {', '.join(missing)}", "give it the Role of: scriptmode serve manifests")
    return f"Kubernetes {version} answers, and pods can be created in the namespace {api.namespace}"


def run_job() -> str:
    """Run a job in a pod."""
    from scriptmode import Estimator
    from scriptmode_kubernetes._engine.platform import Kubernetes

    find_cluster()
    with tempfile.TemporaryDirectory(prefix="scriptmode-doctor-") as folder:
        script = Path(folder, "train.py")
        script.write_text("", encoding="utf-8")
        platform = Kubernetes(data_dir=Path(folder, "data"))
        job = Estimator(
            entry_point=str(script), instance_type="kubernetes", platform=platform, max_run=_WAIT_SECONDS
        ).fit(wait=False)
        try:
            job.wait(logs=False, timeout=_WAIT_SECONDS)
        except ScriptmodeError as error:
            job.stop()
            advice = error.advice or "see that its image has train: scriptmode image"
            raise PlatformError(f"the job failed: {error.message}", advice) from error
    return "a pod ran a script"


#: By the names of the checks, in their order.
CHECKS = {"cluster": find_cluster, "trial pod": run_job}
