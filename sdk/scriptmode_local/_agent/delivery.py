"""What a job delivers at its end: its model and other output, its last checkpoints, and notes of what is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scriptmode.errors import DataError
from scriptmode_local._outputs import missing_model, packed_artifacts
from scriptmode_local._system import full_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._outputs.checkpoints import CheckpointSync
    from scriptmode_local._store.job_store import JobFolder

#: The reason and the text of an event for each loss.
Losses = list[tuple[str, str]]


class Delivery(NamedTuple):
    """The delivery of one job; its methods block, so they run in a forked task."""

    folder: JobFolder
    request: JobRequest
    sandboxes: Sequence[Sandbox]
    checkpoints: CheckpointSync | None
    #: The data directory, which names the disk of the job's directory in messages.
    disk: Path
    #: Writes a line to the log that the user reads.
    log: Callable[[str], None]

    @property
    def has_model(self) -> bool:
        """Whether a host left a model."""
        return not packed_artifacts.is_model_empty(self.sandboxes)

    def deliver(self, *, with_model: bool, expects_model: bool) -> tuple[str, Losses]:
        """Deliver the artifacts and the last checkpoints; return the model's URI, "" without one, and the losses.

        With ``expects_model`` the log of a job without a model says so. Raises `DataError` and ``OSError``.
        """
        if expects_model and not self.has_model:
            text = missing_model.describe_missing_model(self.request, self.sandboxes[0])
            if text:
                self.log(text)
        losses = Losses()
        with full_disk.translate_full_disk_errors(self.disk):
            uri = packed_artifacts.publish_artifacts(
                self.request, self.sandboxes, self.folder.output, with_model=with_model, say=self._note_in(losses)
            )
            if self.checkpoints and with_model:
                self.checkpoints.finish(self._note_in(losses))
        # A job that failed delivers its output also where its checkpoints cannot be copied.
        return uri, losses if with_model else losses + self.finish_checkpoints()

    def restore_checkpoints(self) -> None:
        """Copy the checkpoints of an earlier job to every host; raise `PlatformError` or ``OSError``."""
        if self.checkpoints:
            with full_disk.translate_full_disk_errors(self.disk):
                self.checkpoints.restore()

    def finish_checkpoints(self) -> Losses:
        """Copy the last checkpoints of a job that did not complete, if it has any; return the losses."""
        losses = Losses()
        try:
            if self.checkpoints:
                self.checkpoints.finish(self._note_in(losses))
        except (DataError, OSError) as error:
            self.log(f"checkpoints were not copied: {error}")
            losses.append(("CheckpointsNotCopied", f"the last checkpoints were not copied: {error}"))
        return losses

    def _note_in(self, losses: Losses) -> Callable[[str], None]:
        def note(text: str) -> None:
            losses.append(("OutputLeftOut", text))
            self.log(text)

        return note
