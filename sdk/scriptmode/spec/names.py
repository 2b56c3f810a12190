"""Names of training jobs."""

from __future__ import annotations

import re
from _thread import allocate_lock  # threading takes 2 ms of every start
from datetime import datetime, timedelta, timezone

from scriptmode.errors import SpecError

#: The service's limit and pattern (CreateTrainingJob, TrainingJobName).
NAME_LIMIT = 63
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class JobNames:
    """Makes job names that differ: two within one millisecond take two times."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=timezone.utc)
        self._lock = allocate_lock()

    def fresh(self, base: str) -> str:
        """Make a name of ``base`` and the UTC time that this object has not made before."""
        with self._lock:
            self._last = max(datetime.now(timezone.utc), self._last + timedelta(milliseconds=1))
            return job_name(base, self._last)


def job_name(base: str, moment: datetime) -> str:
    """Make a job's name: ``base`` and the UTC time to the millisecond, at most 63 characters, as the service allows."""
    stamp = moment.strftime("%Y-%m-%d-%H-%M-%S-") + f"{moment.microsecond // 1000:03d}"
    head = re.sub(r"[^a-zA-Z0-9]+", "-", base).strip("-")[: NAME_LIMIT - len(stamp) - 1].rstrip("-")
    return f"{head or 'training'}-{stamp}"


def base_of_job(name: str) -> str:
    """Give back the base that a job's name was made of; a name of another make is its own base."""
    return re.sub(r"-\d{4}(-\d{2}){5}-\d{3}$", "", name)


def check_job_name(name: str) -> str:
    """Return a job name the service accepts; raise `SpecError` for another."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(
            f"job_name {name!r} is not 1 to {NAME_LIMIT} letters, digits and single inner hyphens, "
            f"starting and ending with a letter or digit; write {_mended(name)!r}"
        )
    return name


def _mended(name: object) -> str:
    return re.sub(r"[^a-zA-Z0-9]+", "-", str(name))[:NAME_LIMIT].strip("-") or "training-1"


def base_of_image(image_uri: str) -> str:
    """Give the image's own name: ``registry/team/name:tag`` is ``name``."""
    return re.split(r"[:@]", image_uri.rsplit("/", 1)[-1])[0]
