"""The values that a plan consists of: its hosts with their processes, its source, and a difference. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scriptmode_runtime.plan import ProcessSpec, Wait


@dataclass(frozen=True)
class HostPlan:
    """All that one host would find and run.

    Attributes:
        name: Name of the host, such as ``algo-1``.
        roles: Roles in the cluster; ``""`` if the image runs its own program.
        instance_type: Type of the instance.
        base_dir: Directory of the platform's files on the host.
        files: Content of the platform's files, by their names relative to ``base_dir``.
        preparation: Processes that run one after the other before all others.
        main: Process whose end is the end of the host, if the host has one.
        beside: Processes beside it that run to their own ends.
        services: Processes that are stopped at the end.
        before: Events to wait for before the processes start.
        after: Events to wait for after the main process has ended.
        writes: Files that are written for the processes, by their paths.
        variables: The ``SM_*`` variables of the processes.
        program: Command line of the training script, which an ``mpirun`` starts for its ranks.
    """

    name: str
    roles: str
    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    preparation: tuple[ProcessSpec, ...] = ()
    main: ProcessSpec | None = None
    beside: tuple[ProcessSpec, ...] = ()
    services: tuple[ProcessSpec, ...] = ()
    before: tuple[Wait, ...] = ()
    after: tuple[Wait, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = field(default=())

    @property
    def processes(self) -> tuple[ProcessSpec, ...]:
        """Every process that trains or serves, the main one first."""
        return (*([self.main] if self.main else []), *self.beside, *self.services)


@dataclass(frozen=True)
class SourcePlan:
    """The source archive: its URI, and its content if that is known. Sizes are in bytes.

    Attributes:
        uri: URI at which it would be stored, or is already stored.
        files: Sizes of its files by their names; ``None`` for a stored archive that was not opened.
        size: Size of the compressed archive; ``None`` if it is only packed when the job starts, as large ones are.
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


@dataclass(frozen=True)
class Change:
    """The value of a field of the request before and after; ``None`` if it was not, or is not, set."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """How a plan differs from ``job``. What differs between any two jobs, such as their names, is left out.

    Attributes:
        job: Name of the job.
        fields: Changed fields of the request by their paths.
        added: Files that only the plan's source has; ``None`` if an archive could not be opened.
        removed: Files that only the job's source has, or ``None``.
        changed: Files that differ, or ``None``.
        note: Reason why the sources are not compared, or ``""``.
    """

    job: str
    fields: Mapping[str, Change]
    added: tuple[str, ...] | None = None
    removed: tuple[str, ...] | None = None
    changed: tuple[str, ...] | None = None
    note: str = ""

    @property
    def is_none(self) -> bool:
        """Whether no difference was found."""
        return not (self.fields or self.added or self.removed or self.changed)
