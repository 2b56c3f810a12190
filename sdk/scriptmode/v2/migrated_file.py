"""A program or a notebook of the SageMaker SDK, and what ``scriptmode migrate`` changes in it."""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.errors import DataError
from scriptmode.v2.migration import Migrator
from scriptmode.v2.notebook_text import code_cells
from scriptmode.v2.source_blocks import apply_edits, parse_cell, parse_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.v2.migration import Use
    from scriptmode.v2.notebook_text import CellSource
    from scriptmode.v2.source_blocks import Block

_SUFFIXES = (".py", ".ipynb")
#: Directories of other programs' files, beside those whose names begin with a dot.
_NOT_ENTERED = ("__pycache__", "node_modules", "site-packages")
#: What is for IPython alone, and may need a change that this module does not make.
_UNREAD = re.compile(r"\bpip3?\b.*\binstall\b.*\bsagemaker(?![\w-])|^\s*(?:import|from)\s+sagemaker\b", re.MULTILINE)


class Location(NamedTuple):
    """A use of sagemaker in a file: its line, its cell from 1 on or 0, its name, and what to do instead."""

    line: int
    cell: int
    name: str
    advice: str


@dataclass(frozen=True)
class MigratedFile:
    """A file, its text before and after the changes, and its uses of sagemaker."""

    path: Path
    old: str
    new: str
    encoding: str
    #: The names of scriptmode that it uses as they are, and the uses that have no counterpart.
    unchanged: tuple[str, ...]
    missing: tuple[Location, ...]
    #: Why cells of it cannot be read.
    errors: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether anything has to change."""
        return self.new != self.old

    def diff(self) -> str:
        """Return the changes as a unified diff; "" without any."""
        name = os.path.relpath(self.path)
        names = (str(self.path),) * 2 if name.startswith("..") else (f"a/{name}", f"b/{name}")
        lines = difflib.unified_diff(_lines(self.old), _lines(self.new), *names)
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
        entered = (each for each in below if each[0] != "." and each not in _NOT_ENTERED)
        below[:] = sorted(each for each in entered if not Path(folder, each, "pyvenv.cfg").exists())
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(_SUFFIXES))


def migrate_file(path: Path) -> MigratedFile:
    """Return what has to change in a program or a notebook; nothing is written.

    Raises:
        DataError: The file cannot be read, or is neither Python nor a notebook. Cells that are not Python are `errors`.
    """
    try:
        content = path.read_bytes()
        encoding = "utf-8" if path.suffix == ".ipynb" else tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = content.decode(encoding)
        return _migrate_notebook(path, text) if path.suffix == ".ipynb" else _migrate_program(path, text, encoding)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{where}: it is not Python 3: {error.msg}", "correct it first") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: it is not JSON: {error.msg}", "correct it first") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}", "save it in a current format first") from error


def _migrate_program(path: Path, text: str, encoding: str) -> MigratedFile:
    block = parse_program(text)
    found = Migrator([block]).run()
    missing = [Location(block.line_of(use.offset), 0, use.name, use.advice) for use in found.missing]
    new = apply_edits(text, found.edits[0])
    return MigratedFile(path, text, new, encoding, _names(found.unchanged), tuple(missing))


def _migrate_notebook(path: Path, text: str) -> MigratedFile:
    parsed: list[tuple[CellSource, Block]] = []
    missing: list[Location] = []
    errors = []
    for source in code_cells(text):
        try:
            block = parse_cell(source.text)
        except SyntaxError as error:
            where = f"{path}:{_location(source, 0, '', '').line}: cell {source.cell + 1}, line {error.lineno}"
            errors.append(f"{where}: it is not Python 3: {error.msg}; correct it first")
            continue
        if block is not None:
            parsed.append((source, block))
        missing += _unread(source, block)
    found = Migrator([block for _, block in parsed]).run()
    edits = [edit for (source, _), each in zip(parsed, found.edits) for edit in source.edits_of_notebook(each)]
    missing += [_location(parsed[use.block][0], use.offset, use.name, use.advice) for use in found.missing]
    unchanged, new = _names(found.unchanged), apply_edits(text, edits)
    return MigratedFile(path, text, new, "utf-8", unchanged, tuple(sorted(missing)), tuple(errors))


def _unread(source: CellSource, block: Block | None) -> Iterator[Location]:
    """Yield the lines for IPython that install or import sagemaker."""
    for match in _UNREAD.finditer(source.text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        is_read = block is not None and block.parsed[start : match.end()] == source.text[start : match.end()]
        if not is_read:
            is_pip = "install" in match[0]
            advice = "install scriptmode instead" if is_pip else "this cell is not changed: change its file yourself"
            yield _location(source, start, match[0].strip().lstrip("!%"), advice)


def _location(source: CellSource, offset: int, name: str, advice: str) -> Location:
    line = source.notebook.count("\n", 0, source.offset_in_notebook(offset)) + 1
    return Location(line, source.cell + 1, name, advice)


def _names(uses: list[Use]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(use.name for use in uses))


def _lines(text: str) -> list[str]:
    # At line feeds alone, as `patch` and `git apply` divide a file.
    return re.findall(r"[^\n]*\n|[^\n]+", text)
