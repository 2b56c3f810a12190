"""Programs of custom debugger and profiler rules that are files of this machine: where each is stored for its job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.source.source_archive import read_tree
from scriptmode._core.text.messages import did_you_mean_path
from scriptmode.errors import SourceError

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import TrainingJobSpec

#: The rule parameter that says where a rule's program is (SageMaker SDK).
PARAMETER = "source_s3_uri"


class RuleFile(NamedTuple):
    """One file of a rule's program: its content, and the URI that it is stored at."""

    path: Path
    data: bytes
    uri: str


def add_rule_files(spec: TrainingJobSpec) -> tuple[TrainingJobSpec, tuple[RuleFile, ...]]:
    """Return a completed spec whose rules name their programs below the code location, and the files to store there.

    A file is stored at ``<code location>/<digest>/<name>``, those of a directory below ``<code location>/<digest>``;
    the same content is stored once. Raises `SourceError` for a program that does not exist, and for what `source.pack`
    refuses of a directory.
    """
    files: list[RuleFile] = []

    def with_uri(rule: Mapping[str, Any]) -> Mapping[str, Any]:
        parameters = rule.get("RuleParameters") or {}
        source = parameters.get(PARAMETER)
        if not isinstance(source, str) or source.startswith("s3://"):
            return rule
        own = _files(str(rule.get("RuleConfigurationName")), source, str(spec.output.code_location))
        files.extend(own)
        uri = own[0].uri
        if Path(source).is_dir():
            uri = uri[: -len(own[0].path.relative_to(source).as_posix()) - 1]
        return {**rule, "RuleParameters": {**parameters, PARAMETER: uri}}

    monitoring = spec.monitoring.with_rules(with_uri)
    return (replace(spec, monitoring=monitoring), tuple(files)) if files else (spec, ())


def _files(rule: str, source: str, location: str) -> list[RuleFile]:
    """Read a rule's program: one file, or of a directory what would be packed of a source directory."""
    root = Path(source)
    is_directory = bool(source) and root.is_dir()
    files = read_tree(root) if is_directory else {}
    if root.is_file():
        files[root.name] = root.read_bytes()
    if not files:
        what = "has no files" if is_directory else f"does not exist (looked in {Path.cwd()})"
        raise SourceError(
            f"rule {rule!r}: source {source!r} {what}",
            did_you_mean_path(root) or "give the rule's Python file, or the s3:// URI of a stored one",
            argument="rules",
        )
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    below = f"{location.rstrip('/')}/{digest.hexdigest()}"
    return [RuleFile(root / name if is_directory else root, data, f"{below}/{name}") for name, data in files.items()]
