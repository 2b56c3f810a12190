"""A program or a notebook of the SageMaker SDK, and what ``scriptmode migrate`` changes in it."""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.errors import DataError
from scriptmode.v2._migration import Block, NotIncluded, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Directories of other programs' files, beside those whose names begin with a dot.
_NOT_ENTERED = ("__pycache__", "node_modules", "site-packages")


class MigratedFile(NamedTuple):
    """A file, its text before and after the changes, and what has no counterpart."""

    path: Path
    old: str
    new: str
    encoding: str
    not_included: list[NotIncluded]

    def diff(self) -> str:
        """Return the changes as a unified diff; "" without any."""
        name = os.path.relpath(self.path)
        # At line feeds alone, as `patch` and `git apply` divide a file.
        old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Write the new text; raises `DataError` if the file cannot be written."""
        try:
            self.path.write_bytes(self.new.encode(self.encoding))
        except OSError as error:
            raise DataError(f"{self.path} cannot be written: {error.strerror}") from error


def find_files(path: Path) -> Iterator[Path]:
    """Yield a file, or the programs and notebooks below a directory, without hidden directories and environments."""
    if not path.is_dir():
        yield path
        return
    for folder, below, files in os.walk(path):
        entered = (name for name in below if name[0] != "." and name not in _NOT_ENTERED)
        below[:] = sorted(name for name in entered if not Path(folder, name, "pyvenv.cfg").exists())
        yield from (Path(folder, name) for name in sorted(files) if name.endswith((".py", ".ipynb")))


def migrate_file(path: Path) -> MigratedFile:
    """Return what has to change in a program or a notebook; nothing is written.

    Raises:
        DataError: The file cannot be read, or is neither Python nor a notebook.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".ipynb":
            return _migrate_notebook(path, content.decode())
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        block = Block(content.decode(encoding), f"{path}:")
        not_included = migrate([block])
        return MigratedFile(path, block.text, block.changed(), encoding, not_included)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno or 1}: it is not Python 3: {error.msg}", "correct it first") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path} is not a notebook of format 4, or not text: {error}", "save it again first") from error


def _migrate_notebook(path: Path, text: str) -> MigratedFile:
    """Return the changes of a notebook, which is written as Jupyter writes it, with its own indentation."""
    notebook = json.loads(text)
    blocks, unreadable = [], []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        where = f"{path}: cell {number}, line "
        try:
            blocks.append((cell, Block("".join(cell["source"]), where, is_cell=True)))
        except SyntaxError as error:
            unreadable.append(NotIncluded(f"{where}{error.lineno or 1}", error.msg, "this is not Python 3: correct it"))
    not_included = migrate([block for _, block in blocks]) + unreadable
    changed = [(cell, block.changed()) for cell, block in blocks if block.changed() != block.text]
    if not changed:
        return MigratedFile(path, text, text, "utf-8", not_included)
    for cell, source in changed:
        is_list = isinstance(cell["source"], list)
        cell["source"] = io.StringIO(source, newline="").readlines() if is_list else source
    indentation = re.match(r"\{\r?\n([ \t]+)", text)
    # Halves of surrogate pairs are text as escapes alone.
    is_ascii = text.isascii() or re.search(r"\\u[dD][89a-fA-F]", text) is not None
    written = json.dumps(notebook, indent=indentation and indentation[1], ensure_ascii=is_ascii)
    return MigratedFile(path, text, written + text[len(text.rstrip()) :], "utf-8", not_included)
