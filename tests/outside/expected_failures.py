"""Blocks of documents that do not work yet, and why. A block that begins to work must be removed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from docs.documents import label

if TYPE_CHECKING:
    from docs.documents import Block
    from outside.documents_run import DocumentRun


@dataclass(frozen=True)
class ExpectedFailure:
    """Blocks that contain ``text``, by document; ``python`` limits it to some runs."""

    document: str
    text: str
    reason: str
    python: tuple[str, ...] = ("3.9", "3.11", "3.13")

    def includes(self, run: DocumentRun, block: Block) -> bool:
        """Return whether this block of this run is expected to fail."""
        return (
            label(run.document).endswith(self.document)
            and self.text in block.text
            and run.installation.python in self.python
        )


EXPECTED: tuple[ExpectedFailure, ...] = ()


def expected_failure(run: DocumentRun, block: Block) -> str | None:
    """Return why a block is expected to fail, or ``None``."""
    return next((each.reason for each in EXPECTED if each.includes(run, block)), None)
