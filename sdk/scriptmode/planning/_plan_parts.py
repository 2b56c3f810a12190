"""The values that a plan consists of: its hosts with their processes, and its source. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scriptmode_runtime.plan import LaunchPlan, as_document

#: The plan of a host whose image runs its own program.
_NO_LAUNCH = LaunchPlan(None)


@dataclass(frozen=True)
class HostPlan:
    """All that one host would find and run.

    Attributes:
        instance_type: Type of the instance.
        base_dir: Directory of the platform's files on the host.
        files: Content of the platform's files, by their names relative to ``base_dir``.
        roles: Roles in the cluster; ``""`` if the image runs its own program.
        program: Command line of the training script, which an ``mpirun`` starts for its ranks.
        launch: The runtime's own plan, which ``train --plan`` prints. Of a host with an image, paths of the
            runtime are those of this installation.
    """

    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    roles: str = ""
    program: tuple[str, ...] = ()
    launch: LaunchPlan = _NO_LAUNCH

    def to_dict(self) -> dict[str, object]:
        """Return the plan as a dict for ``json.dumps``."""
        return {**vars(self), "launch": as_document(self.launch)}


@dataclass(frozen=True)
class SourcePlan:
    """The source archive: its URI, and its content if that is known. Sizes are in bytes.

    Attributes:
        uri: URI at which it would be stored, or is already stored.
        files: Sizes of its files by their names; ``None`` for a stored archive that was not opened.
        size: Size of the compressed archive; ``None`` for one that was not opened.
        digest: SHA-256 of the archive, or ``""``.
    """

    uri: str
    files: Mapping[str, int] | None = None
    size: int | None = None
    digest: str = ""

    @property
    def total(self) -> int | None:
        """The size of all files together."""
        return None if self.files is None else sum(self.files.values())
