"""What the hosts of a job would run: the plans that the runtime makes of the files and variables of a platform."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scriptmode.errors import PlatformError, SpecError
from scriptmode.machine.programs import run_program
from scriptmode_runtime import preview
from scriptmode_runtime.errors import RuntimeFailure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scriptmode.planning.assumptions import Assumptions
    from scriptmode.spec.service_values import PlannedHost
    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.report.redaction import Redaction

#: Seconds for the answer of another interpreter, on a loaded machine.
_SECONDS = 60.0
#: What values of other types raise, in a job that another client described.
_WRONG_TYPES = (AttributeError, LookupError, OSError, TypeError, ValueError)


@dataclass
class RuntimeQuery:
    """The hosts of a job, by their names, and what is assumed of them."""

    hosts: Mapping[str, PlannedHost]
    known: Assumptions
    #: Texts of the source's files by their names.
    source: Mapping[str, str] = field(default_factory=dict)
    _environments: dict[str, TrainingEnvironment] = field(default_factory=dict)

    @property
    def strategies(self) -> set[str]:
        """The distribution strategies of the hosts that were planned."""
        return {here.strategy for here in self._environments.values()}

    def previews(self, with_variables: Collection[str]) -> dict[str, preview.Preview]:
        """Return what each host would run, with the ``SM_*`` variables of some.

        Raises `SpecError` with the runtime's message for a host that would refuse to run, and `PlatformError` for a job
        that another client described with values of other types.
        """
        return {name: self._preview(name, with_variables=name in with_variables) for name in self.hosts}

    def roles(self) -> dict[str, str]:
        """Return the roles of each host; none for a job that the runtime would refuse."""
        try:
            return {name: preview.roles(self._environment(name)) for name in self.hosts}
        except (RuntimeFailure, *_WRONG_TYPES):
            return {}

    def hide_secrets(self, named: Iterable[Mapping[str, Any]] = ()) -> Redaction:
        """Return a function that hides the secrets of the hosts, and those of ``named``."""
        variables = (host.variables for host in self.hosts.values())
        return preview.hide_secrets(self._environments.values(), variables, named)

    @cached_property
    def _import_path(self) -> tuple[str, ...] | None:
        """Where the interpreter of the hosts looks for packages; ``None`` for this one."""
        python = next((host.python for host in self.hosts.values()), "")
        return None if python in ("", sys.executable) else _read_import_path(python)

    def _preview(self, name: str, *, with_variables: bool) -> preview.Preview:
        try:
            return preview.preview(self._environment(name), with_variables=with_variables)
        except RuntimeFailure as error:
            raise SpecError(f"{name} would refuse to run: {self.hide_secrets()(str(error))}") from None
        except _WRONG_TYPES as error:
            raise PlatformError(f"the hosts' runtime cannot plan the job: {error!r}") from error

    def _environment(self, name: str) -> TrainingEnvironment:
        host = self.hosts[name]
        gpus = self.known.gpus.get(host.instance_type, host.gpus)
        here = preview.host_environment(
            host.base_dir, host.files, host.variables, gpus=gpus, assumed=self.known.machine, python=host.python
        )
        if self._import_path is not None:
            here = here._replace(import_path=self._import_path)
        self._environments[name] = here = here._replace(source=self.source)
        return here


def _read_import_path(python: str) -> tuple[str, ...]:
    """Return where an interpreter looks for packages; nothing for one that does not say it."""
    try:
        result = run_program((python, "-c", "import json, sys; print(json.dumps(sys.path))"), _SECONDS, cwd="/")
        # Site packages may print lines before.
        return tuple(json.loads(result.output.splitlines()[-1]))
    except (OSError, ValueError, LookupError, TypeError):
        return ()
