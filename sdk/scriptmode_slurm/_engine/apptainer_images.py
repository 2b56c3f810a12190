"""The image of a job's hosts, which Apptainer, or Singularity, its former name, runs on a node. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime.contract import DEFAULT_BASE_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import PurePath

#: The programs, the first one preferred.
PROGRAMS = ("apptainer", "singularity")


def image_reference(image_uri: str) -> str:
    """Return an image as Apptainer names it: a path or a URI as it is, a name in a registry with ``docker://``."""
    return image_uri if "://" in image_uri or image_uri.startswith(("/", ".")) else f"docker://{image_uri}"


def image_command(
    program: str, image_uri: str, base: PurePath, binds: Iterable[PurePath], command: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs another one in an image, as this user and with this process's variables.

    ``base`` is the host's ``/opt/ml``; ``binds`` are directories that the host finds at the same paths as on the node.
    """
    return (
        program,
        # Its own lines are of no use to a job's log; errors are written all the same.
        "--quiet",
        "exec",
        # NVIDIA's and AMD's libraries of the node; a warning where it has none.
        "--nv",
        # The image's own files, and not packages that the user installed in the home directory.
        "--no-home",
        "--pwd",
        "/",
        *(word for path in dict.fromkeys(map(str, (base, *binds))) for word in ("--mount", _mount(path, path))),
        "--mount",
        _mount(str(base), DEFAULT_BASE_DIR),
        image_reference(image_uri),
        *command,
    )


def _mount(source: str, target: str) -> str:
    """Return the value of --mount, whose fields are quoted as in CSV: a path may have a comma."""
    fields = ("type=bind", f"src={source}", f"dst={target}")
    return ",".join('"' + field.replace('"', '""') + '"' if {*',"'} & {*field} else field for field in fields)
