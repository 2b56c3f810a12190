"""How a notebook is kept: without outputs, counts and the editor's own metadata, and always spelled the same.

    python tests/notebooks/stripping.py      rewrites every notebook so

Then a change of a notebook is a change of its cells, and nothing that ran on one machine is shown as everyone's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def stripped(text: str) -> str:
    """Give a notebook's text as it is kept."""
    notebook = nbformat.reads(text, as_version=4)
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        # Named by its place, for an editor gives another random name to each new cell.
        cell.id = f"cell-{number}"
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip().splitlines())
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def main() -> int:
    """Rewrite the notebooks that are not as they are kept; name them."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = path.read_text()
        if stripped(text) != text:
            path.write_text(stripped(text))
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
