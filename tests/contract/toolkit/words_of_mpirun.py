"""What a command line of Open MPI asks for, whichever way it is spelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Options that are followed by a value, beside those below that are taken apart.
VALUED = {"bind-to", "map-by"}


def asked(words: Sequence[str], files: Mapping[str, str]) -> dict[str, Any]:
    """Take the words after ``mpirun`` apart; one or two dashes are the same, and a later word wins."""
    found: dict[str, Any] = {"hosts": {}, "mca": {}, "exports": {}, "options": {}, "flags": []}
    rest = iter(words)
    for word in rest:
        name = word.lstrip("-")
        if not word.startswith("-"):
            found["program"] = [word, *rest]
        elif name == "np":
            found["ranks"] = next(rest)
        elif name == "host":
            found["hosts"] = dict(_slots(host, ":") for host in next(rest).split(","))
        elif name == "hostfile":
            found["hosts"] = dict(_slots(line, " slots=") for line in files[next(rest)].splitlines())
        elif name == "mca":
            found["mca"].update([(next(rest), next(rest))])
        elif name == "x":
            variable, equals, value = next(rest).partition("=")
            found["exports"][variable] = value if equals else None
        elif name in VALUED:
            found["options"][name] = next(rest)
        else:
            found["flags"] = sorted({*found["flags"], name})
    return found


def _slots(text: str, between: str) -> tuple[str, int]:
    host, _, slots = text.partition(between)
    return host, int(slots or 1)
