"""What the hosts of a job would run: the plans that the runtime makes of the files and variables of a platform."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scriptmode.core.machine.programs import run_program
from scriptmode.core.spec.service_values import PlannedHost
from scriptmode.errors import PlatformError, SpecError
from scriptmode.planning.assumptions import Assumptions
from scriptmode_runtime import preview
from scriptmode_runtime.environment import TrainingEnvironment
from scriptmode_runtime.errors import RuntimeFailure
from scriptmode_runtime.report.redaction import Redaction

#: Seconds for the answer of another interpreter, on a loaded machine.
_SECONDS = 60.0
_QUESTION = "import json, sys; print(json.dumps([sys.executable, sys.path]))"
#: What values of other types raise, in a job that another client described.
_WRONG_TYPES = (AttributeError, LookupError, OSError, TypeError, ValueError)


@dataclass(frozen=True)
class RuntimeQuery:
    """The hosts of a job, by their names, and what is assumed of them."""

    hosts: Mapping[str, PlannedHost]
    known: Assumptions
    #: Texts of the source's files by their names.
    source: Mapping[str, str] = field(default_factory=dict)
    #: Mappings whose secrets are hidden, beside those of the hosts.
    named: Sequence[Mapping[str, Any]] = ()

    def environment(self, name: str) -> TrainingEnvironment:
        """Return what the runtime reads on a host.

        Raises `SpecError` with the runtime's message for a host that would refuse to run, and `PlatformError` for a job
        that another client described with values of other types, or an interpreter that does not answer.
        """
        host, (python, import_path) = self.hosts[name], self._interpreter
        with self._refusals(name):
            here = preview.host_environment(
                host.base_dir,
                host.files,
                host.variables,
                gpus=self.known.gpus.get(host.instance_type, host.gpus),
                assumed=self.known.machine,
                python=python,
            )
        return here._replace(source=self.source, import_path=import_path)

    def preview(self, name: str) -> preview.Preview:
        """Return what a host would run; raise as `environment`."""
        here = self.environment(name)
        with self._refusals(name, here):
            return preview.preview(here)

    def roles(self) -> dict[str, str]:
        """Return the roles of each host, without a look at the source; raise as `environment`."""
        found = {}
        for name in self.hosts:
            here = self.environment(name)
            with self._refusals(name, here):
                found[name] = preview.roles(here)
        return found

    def redaction(self, environments: Iterable[TrainingEnvironment]) -> Redaction:
        """Return a function that hides the secrets of the hosts, and those of ``named``."""
        return preview.redaction_of(environments, (host.variables for host in self.hosts.values()), self.named)

    @cached_property
    def _interpreter(self) -> tuple[str, tuple[str, ...]]:
        return _query_interpreter(next((host.python for host in self.hosts.values()), ""))

    @contextmanager
    def _refusals(self, host: str, *known: TrainingEnvironment) -> Iterator[None]:
        """Raise the runtime's errors about a host as the SDK's, without secrets."""
        try:
            yield
        except RuntimeFailure as error:
            what = self.redaction(known)(str(error))
            raise SpecError(f"{host} would refuse to run: {what}") from None
        except _WRONG_TYPES as error:
            what = self.redaction(known)(repr(error))
            raise PlatformError(f"the hosts' runtime cannot plan the job: {what}") from None


def _query_interpreter(python: str) -> tuple[str, tuple[str, ...]]:
    """Return what an interpreter calls itself, and where it looks for packages; by default this one's."""
    if python in ("", sys.executable):
        return sys.executable, tuple(sys.path)
    why = "it prints no answer"
    try:
        result = run_program((python, "-c", _QUESTION), _SECONDS, cwd="/")
        why = result.failure or why
        # Site packages may print lines before.
        path, import_path = json.loads(result.output.splitlines()[-1])
        return str(path), tuple(map(str, import_path))
    except (OSError, LookupError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, OSError) else why
        advice = "correct 'python', the hosts' interpreter"
        raise PlatformError(f"{python} does not run Python programs: {why}", advice=advice) from error
