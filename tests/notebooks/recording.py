"""How a notebook is kept: with the outputs of one run of its current cells, and always spelled the same.

    make notebooks [NAMES="quickstart ..."]     runs notebooks and keeps their outputs; all that do not need containers

A reader without Jupyter sees what happens. What differs from run to run without meaning anything, such as paths, the
times in jobs' names and addresses of objects, is replaced by what is typical; a run's measurements stay.
"""

import hashlib
import re
import sys
import time
from pathlib import Path

# This directory's parent is on the path of the tests alone.
sys.path.insert(0, str(Path(__file__).parents[1]))

import nbformat

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: Run only where there is a Docker daemon with the training image: named, not recorded by default.
WITH_CONTAINERS = ("keras3",)
#: Key of the notebook's metadata that has the digest of the code that was run.
RECORDED = "recorded_code"
_JOB_TIME = re.compile(r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{3}|(?<=mnist-)\d{8}-\d{6}")
#: Whatever stands on the left is replaced in all texts of outputs.
_TYPICAL = (
    (re.compile(r"0x[0-9a-f]{8,}"), "0x7f0000000000"),
    (re.compile(r"(http://(?:localhost|127\.0\.0\.1)):\d+"), r"\1:6006"),
    (re.compile(r"/tmp/tmp\w{8}"), "/tmp/work"),
)
#: Seconds for one cell: the comparison has the longest.
_CELL_SECONDS = 3600.0


def stripped(text):
    """Return a notebook's text without outputs, as it is kept where no run of it was recorded."""
    notebook = _normalized(nbformat.reads(text, as_version=4))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata.pop(RECORDED, None)
    return _written(notebook)


def kept(text):
    """Return a notebook's text as it is kept: its outputs stay."""
    return _written(_normalized(nbformat.reads(text, as_version=4)))


def code_digest(notebook):
    """Return a digest of the code cells, which tells whether outputs are of these cells."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def recorded(notebook, paths):
    """Return the text of a notebook that was run, with typical texts instead of ``paths`` and of what is accidental."""
    jobs = {}

    def typical(text):
        for path, name in sorted(paths.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(path, name)
        for pattern, replacement in _TYPICAL:
            text = pattern.sub(replacement, text)
        return _JOB_TIME.sub(lambda found: jobs.setdefault(found[0], f"2026-01-31-12-{len(jobs):02d}-00-000"), text)

    _normalized(notebook)
    for count, cell in enumerate((each for each in notebook.cells if each.cell_type == "code"), 1):
        cell.execution_count = count
        cell.outputs = [_output(each, count, typical) for each in _joined(cell.outputs)]
    notebook.metadata[RECORDED] = code_digest(notebook)
    return _written(notebook)


def _normalized(notebook):
    """Leave in a notebook what its cells are, and no setting of an editor."""
    digest = notebook.metadata.get(RECORDED)
    notebook.metadata = nbformat.from_dict({**METADATA, **({RECORDED: digest} if digest else {})})
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        # Named by its place, for an editor gives another random name to each new cell.
        cell.id = f"cell-{number}"
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip().splitlines())
        cell.pop("attachments", None)
    return notebook


def _written(notebook):
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _joined(outputs):
    """Join what came in several messages: how a stream is cut is accidental."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _output(output, count, typical):
    if output.output_type == "stream":
        output.text = typical(output.text)
        return output
    if output.output_type == "execute_result":
        output.execution_count = count
    output.metadata = nbformat.from_dict({})
    for kind, value in output.get("data", {}).items():
        if kind.startswith("text/"):
            output.data[kind] = typical(value)
    return output


def run(name):
    from notebooks.execution import executed

    with executed(name, timeout=_CELL_SECONDS) as execution:
        folder = execution.folder
        paths = {
            f"{folder}/notebooks": "/home/me/scriptmode/notebooks",
            f"{folder}/data": "/home/me/.local/share/scriptmode",
            str(folder): "/home/me",
            sys.prefix: "/home/me/scriptmode/.venv",
            str(NOTEBOOKS.parent): "/home/me/scriptmode",
            str(Path.home()): "/home/me",
        }
        return recorded(execution.notebook, paths)


def main(names):
    """Run the named notebooks, by default all that need no containers, and keep them with their outputs."""
    default = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if path.stem not in WITH_CONTAINERS]
    for name in names or default:
        began = time.monotonic()
        text = run(name)
        (NOTEBOOKS / f"{name}.ipynb").write_text(text)
        print(f"{name}: {len(text):,} characters, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
