"""What the installed ``sagemaker<3`` sends for each case of the matrix, and what scriptmode renders beside it.

    python v2_requests.py    # in v2's environment and the folder that has the sources; prints JSON

``v2`` and ``ours`` have the request of each case by its id, or ``{"error": ...}``; ``parameters`` are the names of the
arguments of v2's constructors.

Everything of v2 really runs, down to the wire: ``fit(wait=False)``, botocore's own checks of the request, the packing
and the upload of the source. Answers come from memory. An attempt to reach a network ends the program.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from sagemaker_sdk.matrix.case import Case

#: v2 reports every call to its makers otherwise.
QUIET = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}


def main() -> None:
    attempts = _no_network()
    _set_config("SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "admin.yaml", QUIET)
    import sagemaker
    import sagemaker.tensorflow
    from fakes.recorded_aws import RecordedAws
    from sagemaker_sdk.matrix import CASES

    logging.disable(logging.CRITICAL)
    _validate_each_config_once()
    aws = RecordedAws()
    sessions: dict[str, Any] = {}
    answers: dict[str, Any] = {"v2": {}, "ours": {}}
    for case in CASES:
        _set_config("SAGEMAKER_USER_CONFIG_OVERRIDE", "user.yaml", case.config)
        key = json.dumps(case.config)
        if key not in sessions:
            sessions[key] = sagemaker.Session(boto_session=aws.session)
        answers["v2"][case.id] = _request(lambda case=case, key=key: _of_v2(case, sessions[key], aws))
        answers["ours"][case.id] = _request(lambda case=case: _ours(case, aws))
    classes = (sagemaker.estimator.EstimatorBase, sagemaker.estimator.Estimator, sagemaker.estimator.Framework)
    named = [inspect.signature(each).parameters for each in (*classes, sagemaker.tensorflow.TensorFlow)]
    answers["parameters"] = sorted({name for parameters in named for name in parameters})
    assert not attempts, f"there were attempts to reach {attempts}"
    print(json.dumps(answers))


def _of_v2(case: Case, session: Any, aws: Any) -> dict[str, Any]:
    from sagemaker_sdk.matrix.case import build

    names, made = _names_of_v2(), {}
    estimator = getattr(names, case.estimator)(sagemaker_session=session, **build(case.constructor(), names, made))
    before = len(aws.training_jobs)
    estimator.fit(build(case.inputs, names, made), wait=False, **case.fit)
    (request,) = aws.training_jobs[before:]
    return request


def _ours(case: Case, aws: Any) -> dict[str, Any]:
    """Render ours; what has no class here, such as the debugger's, is v2's own object."""
    from sagemaker_sdk.matrix.case import build

    import scriptmode

    public = {name: getattr(scriptmode, name) for name in scriptmode.__all__}
    names, made = SimpleNamespace(**{**vars(_names_of_v2()), **public}), {}
    arguments = build(case.constructor(), names, made)
    estimator = getattr(names, case.estimator)(sagemaker_session=aws.session, **arguments)
    return estimator.request(build(case.inputs, names, made), **case.fit)


def _request(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return make()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _names_of_v2() -> SimpleNamespace:
    import numpy as np
    from sagemaker import debugger, estimator, inputs, instance_group, tensorflow

    modules = (debugger, inputs, instance_group, tensorflow, estimator)
    merged = {name: value for module in modules for name, value in vars(module).items() if not name.startswith("_")}
    return SimpleNamespace(**{**merged, "numpy": np})


def _set_config(variable: str, name: str, content: dict[str, Any] | None) -> None:
    os.environ.pop(variable, None)
    if content is not None:
        Path(name).write_text(json.dumps(content))  # JSON is YAML
        os.environ[variable] = str(Path(name).absolute())


def _validate_each_config_once() -> None:
    """Keep v2 from checking the same config file some twenty times a call, which takes it a second each time."""
    import jsonschema

    really, seen = jsonschema.validate, set()

    def validate(content: Any, schema: Any) -> None:
        key = json.dumps([content, id(schema)])
        if key not in seen:
            really(content, schema)
            seen.add(key)

    jsonschema.validate = validate


def _no_network() -> list[str]:
    """Refuse every connection and look-up from now on; give the list of those that were tried."""
    attempts: list[str] = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
            attempts.append(f"{event} {arguments[-1] if event == 'socket.connect' else arguments[0]}")
            raise OSError(f"no network: {attempts[-1]}")

    sys.addaudithook(refuse)
    return attempts


if __name__ == "__main__":
    main()
