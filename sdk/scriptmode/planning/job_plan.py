"""What a training job would do, as values: its request, its hosts, its source, and how it differs from another."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Process:
    """One process of a host: ``env`` is what it is given beside the ``SM_*`` variables that every process there has."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


@dataclass(frozen=True)
class Wait:
    """Something that all hosts must reach first; ``timeout`` in seconds, ``None`` for as long as they all live."""

    event: str
    timeout: float | None


@dataclass(frozen=True)
class HostPlan:
    """All that one host would find and run. ``files`` are the platform's, by their names below ``base_dir``.

    ``preparation`` runs one after the other before anything else. ``main`` is the process whose end is the host's, if
    it has one, ``beside`` run to their own ends, ``services`` are stopped at the end; ``writes`` are files for them.
    ``roles`` is ``""`` where the image runs a program of its own.
    """

    name: str
    roles: str
    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    preparation: tuple[Process, ...] = ()
    main: Process | None = None
    beside: tuple[Process, ...] = ()
    services: tuple[Process, ...] = ()
    before: tuple[Wait, ...] = ()
    after: tuple[Wait, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)

    @property
    def processes(self) -> tuple[Process, ...]:
        """Every process that trains or serves, the main one first."""
        return (*([self.main] if self.main else []), *self.beside, *self.services)


@dataclass(frozen=True)
class SourcePlan:
    """The source archive: where it would be, and what is in it where that is known here. Sizes are bytes."""

    uri: str
    #: Names and sizes; ``None`` for an archive that is there already and was not opened.
    files: Mapping[str, int] | None = None
    #: Of the archive, compressed.
    size: int | None = None
    #: SHA-256 of the archive.
    digest: str = ""

    @property
    def total(self) -> int | None:
        """What all files have together."""
        return None if self.files is None else sum(self.files.values())


@dataclass(frozen=True)
class Change:
    """A field of the request, or a file of the source, before and after; ``None`` where it was not, or is not, said."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """How a plan differs from ``job``. What differs between any two jobs, such as their names, is not in it.

    ``fields`` are those of the request, by their paths; ``added``, ``removed`` and ``changed`` name files of the
    source, and are ``None`` where one of the archives could not be opened, which ``note`` says.
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


@dataclass(frozen=True)
class Plan:
    """What `Estimator.fit` would do. ``str()`` of it is for reading, `to_dict` for programs.

    ``request`` is the exact CreateTrainingJob request; everything else is without secrets, ``******`` stands for each.
    """

    request: Mapping[str, Any]
    hosts: Mapping[str, HostPlan]
    source: SourcePlan | None
    #: What was taken to be true because nobody can know before the job starts, in words.
    assumed: tuple[str, ...]
    difference: Difference | None
    _shown: Mapping[str, Any]

    @property
    def job_name(self) -> str:
        """The training job's name."""
        return str(self.request["TrainingJobName"])

    @property
    def shown_request(self) -> Mapping[str, Any]:
        """The request without secrets."""
        return self._shown

    def to_dict(self) -> dict[str, Any]:
        """Give all of it for ``json.dumps``, without secrets."""
        document: dict[str, Any] = _document(self)
        del document["_shown"]
        return {**document, "request": dict(self._shown)}

    def __str__(self) -> str:
        from scriptmode.planning import plan_text

        return plan_text.format_plan(self)

    def __repr__(self) -> str:
        types = "/".join(dict.fromkeys(host.instance_type for host in self.hosts.values()))
        return f"Plan({self.job_name!r}: {len(self.hosts)} x {types})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _document(value: Any) -> Any:
    """Give a value of these classes as JSON's; what stands in it as JSON already is not walked through."""
    if is_dataclass(value):
        return {each.name: _document(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_document(each) for each in value]
    if isinstance(value, dict) and any(map(is_dataclass, value.values())):
        return {key: _document(each) for key, each in value.items()}
    return value
