"""Annotations of untyped JSON: where a dict of anything stands for a value that has a class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.house import sources

#: The modules that read and write untyped JSON; a path that ends in a slash stands for everything below it.
JSON_MODULES = (
    "sdk/scriptmode/request/",  # the service's requests and responses
    "sdk/scriptmode/platforms/sagemaker/",
    "sdk/scriptmode/platforms/local/store/",  # files of JSON
    "sdk/scriptmode/platforms/local/tuning/",  # requests and records of tuning jobs
    "sdk/scriptmode/platforms/tuning_jobs.py",
    "sdk/scriptmode/serve/",  # the service's requests and responses
    "sdk/scriptmode/testing/",  # a fake of the service
    "sdk/scriptmode/estimator.py",  # request()
    "sdk/scriptmode/job.py",  # describe()
    "sdk/scriptmode/tuner.py",  # request() and describe()
    "sdk/scriptmode/spec/tuning_job.py",  # an argument that is the service's own object
    "sdk/scriptmode/spec/estimator_arguments.py",  # arguments that are the service's own objects
    "sdk/scriptmode/spec/monitoring.py",
    "sdk/scriptmode/aws/config.py",  # files of YAML and JSON
    "sdk/scriptmode/platforms/slurm/settings.py",  # files of YAML, records of JSON
    "sdk/scriptmode/cli/job_file.py",
    "sdk/scriptmode/cli/cloud_ml_engine/config.py",
)
_CONTAINERS = ("dict", "Mapping")


def annotations(files: Iterable[sources.Source]) -> Iterator[str]:
    """Yield the place of each ``dict[str, Any]`` and ``Mapping[str, Any]`` in the SDK outside `JSON_MODULES`."""
    for source in files:
        if not source.path.startswith("sdk/") or any(_is_in(source.path, module) for module in JSON_MODULES):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Subscript) and _is_raw(node):
                yield f"{source.path}:{node.lineno}: {ast.unparse(node)}"


def _is_in(path: str, module: str) -> bool:
    return path.startswith(module) if module.endswith("/") else path == module


def _is_raw(node: ast.Subscript) -> bool:
    return (
        ast.unparse(node.value).rpartition(".")[2] in _CONTAINERS and ast.unparse(node.slice).strip("()") == "str, Any"
    )
