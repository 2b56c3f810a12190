"""Every form of a local instance type, for help and errors: all kinds of hosts, as their engines register them."""

from __future__ import annotations

from contextlib import suppress

from scriptmode._core.machine.entry_points import entry_points
from scriptmode._core.spec.hosts import GROUP, LOCAL_CONTAINER, LOCAL_PROCESS, HostKind, instance_kind
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import SpecError


def local_forms() -> dict[str, HostKind]:
    """Return every form, such as ``slurm:PARTITION``, and its kind; without broken engines."""
    forms = {}
    for name in (LOCAL_PROCESS, *LOCAL_CONTAINER, *entry_points(GROUP)):
        with suppress(SpecError):
            kind = instance_kind(name)
            suffix = "gpu=N" if kind.takes_gpus else kind.suffix
            forms.update(dict.fromkeys((name, f"{name}:{suffix}") if suffix else (name,), kind))
    return forms


def describe() -> str:
    """Return the forms by kind: ``local_process (processes of this machine), ...``."""
    by_title: dict[str, list[str]] = {}
    for form, kind in local_forms().items():
        by_title.setdefault(kind.title, []).append(form)
    local = ", ".join(f"{' or '.join(forms)} ({title})" for title, forms in by_title.items())
    return f"{local}, or a type of Amazon SageMaker such as ml.m5.xlarge"


def suggest(word: str, *amazons: str) -> str:
    """Return advice for an unknown instance type, a local one or one of ``amazons``; "" where none is similar."""
    forms, (name, colon, detail) = local_forms(), word.lower().partition(":")
    others = {other: form for form, kind in reversed(forms.items()) for other in kind.other_names}
    known = f"ml.{name}" if f"ml.{name}" in amazons else others.get(name)
    spelled = f"{name}{colon}{detail}"
    suggestion = (name if spelled == word else spelled) if name in forms else known
    return f"did you mean {suggestion!r}?" if suggestion else did_you_mean(word, [*forms, *amazons], most=0)
