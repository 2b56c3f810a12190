"""Run all blocks of a document as a user does, and record what came of each."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docs.documents import RUN, Block, blocks, label
from outside.account import running_account
from outside.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from outside.installations import Environment, Installation
    from outside.reader import MismatchError

#: What documents need beside the installation: extras and programs, which are added together, and an account.
ADDITIONAL = ("tuner", "notebook", "pytest", "serve", "mlflow-skinny", "wandb")
ACCOUNT = "AWS account"


@dataclass(frozen=True)
class DocumentRun:
    """A document with an installation, in an empty directory."""

    installation: Installation
    document: Path

    def __str__(self) -> str:
        return f"{self.installation}-{label(self.document)}"

    @property
    def needs(self) -> set[str]:
        """What the document's blocks need."""
        return {need for block in blocks(self.document) for need in block.needs}

    def blocks(self) -> list[Block]:
        """Return the blocks that are executed: the document runs them, and the installation has what they need."""
        return [
            block
            for block in blocks(self.document)
            if block.not_run is None and (block.file or block.language in RUN) and self.installation.has(block.needs)
        ]

    def run(self, environment: Environment, folder: Path) -> dict[int, MismatchError | None]:
        """Execute every block, also after one that fails; return the failures by the blocks' lines."""
        work = folder / "work"
        work.mkdir()
        with ExitStack() as stack:
            variables = environment.variables(folder / "home")
            if ACCOUNT in self.needs:
                variables.update(stack.enter_context(running_account()))
            reader = Reader(work, folder / "state", variables)
            stack.callback(end_jobs, reader)
            stack.callback(reader.close)
            return {block.line: reader.failure(block) for block in self.blocks()}


def end_jobs(reader: Reader) -> None:
    """Delete the jobs that a document left running."""
    _, printed = reader.run("scriptmode list --platform local --status InProgress --json 2>/dev/null")
    names = [job["TrainingJobName"] for job in json.loads(printed)]
    if names:
        code, printed = reader.run(f"scriptmode rm --force {' '.join(names)}")
        assert code == 0, printed
