"""Names of training jobs, what names of other things tell, and names that clients do not choose."""

from __future__ import annotations

import re
from _thread import allocate_lock  # threading takes 2 ms of every start
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from scriptmode.errors import invalid

#: The service's limit and pattern (CreateTrainingJob, TrainingJobName).
NAME_LIMIT = 63
#: Tags with this prefix are reserved for AWS.
RESERVED_TAGS = "aws:"
#: Tags with this prefix belong to a server of the training API: clients neither see nor set them.
SERVER_TAGS = "scriptmode:"


def job_name(base: str, moment: datetime) -> str:
    """Return a job's name: ``base`` and the UTC time in milliseconds, at most 63 characters, the service's limit."""
    stamp = moment.strftime("%Y-%m-%d-%H-%M-%S-") + f"{moment.microsecond // 1000:03d}"
    head = re.sub(r"[^a-zA-Z0-9]+", "-", base).strip("-")[: NAME_LIMIT - len(stamp) - 1].rstrip("-")
    return f"{head or 'training'}-{stamp}"


def fresh_names(
    make: Callable[[str, datetime], str] = job_name, step: timedelta = timedelta(milliseconds=1)
) -> Callable[[str], str]:
    """Return a function that makes names of a base and the UTC time: two within one ``step`` take two times."""
    last, lock = datetime.min.replace(tzinfo=timezone.utc), allocate_lock()

    def fresh(base: str) -> str:
        nonlocal last
        with lock:
            last = max(datetime.now(timezone.utc), last + step)
            return make(base, last)

    return fresh


def base_of_job(name: str) -> str:
    """Return the base of a job's name; a name of another form is its own base."""
    return re.sub(r"-\d{4}(-\d{2}){5}-\d{3}$", "", name)


def check_job_name(name: str) -> str:
    """Return a job name the service accepts; raise `SpecError` for another."""
    if not isinstance(name, str) or not re.fullmatch("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name):
        raise invalid(
            "job_name",
            f"{name!r} is not 1 to {NAME_LIMIT} letters, digits and single inner hyphens, "
            "starting and ending with a letter or digit",
            f"write {mended(name)!r}",
        )
    return name


def mended(name: object) -> str:
    """Return a similar name that the service accepts."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", str(name))[:NAME_LIMIT].strip("-") or "training-1"


def base_of_image(image_uri: str) -> str:
    """Return the image's name without registry and tag: ``name`` of ``registry/team/name:tag``."""
    return re.split(r"[:@]", image_uri.rsplit("/", 1)[-1])[0]


def account_of_role(arn: str) -> str | None:
    """Return the account of a role's ARN; ``None`` for other texts."""
    match = re.fullmatch(r"arn:aws[a-z-]*:iam::(\d{12}):role/.+", arn)
    return match.group(1) if match else None
