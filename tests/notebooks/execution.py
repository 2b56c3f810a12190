"""Executes a notebook whole in a real Jupyter kernel, and asks that kernel afterwards what the notebook left."""

import ast
import base64
import json
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
from fakes.processes import processes_naming, until
from nbclient import NotebookClient
from nbclient.util import run_sync
from notebooks.recording import stripped
from traitlets.config import Config

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Tag of the cell whose assignments a run may overrule, and of the cell that does; Papermill's names for them.
PARAMETERS, INJECTED = "parameters", "injected-parameters"
#: Jupyter asks programs for colours by FORCE_COLOR.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Execution:
    """A notebook that was executed to its end, and the kernel that it ran in."""

    def __init__(self, client, folder):
        self._client = client
        self.notebook = client.nb
        #: The directory with a copy of the notebooks, and with the jobs.
        self.folder = folder

    def value(self, expression):
        """Evaluate an expression in the kernel; the value comes back as JSON tells it."""
        spelled = f"__import__('json').dumps({expression})"
        answer = run_sync(self._ask)({"value": spelled})["value"]
        assert answer["status"] == "ok", f"{expression}: {answer['ename']}: {answer['evalue']}"
        return json.loads(ast.literal_eval(answer["data"]["text/plain"]))

    async def _ask(self, expressions):
        message = self._client.kc.execute("", silent=True, user_expressions=expressions)
        while True:
            reply = await self._client.kc.get_shell_msg(timeout=600)
            if reply["parent_header"].get("msg_id") == message:
                return reply["content"]["user_expressions"]

    def text(self):
        """Give what all cells wrote, to stdout and stderr, and what their last lines showed, without colours."""
        return _COLOUR.sub("", "".join(_text(output) for output in self._outputs()))

    def pictures(self):
        return [
            base64.b64decode(output["data"]["image/png"])
            for output in self._outputs()
            if "image/png" in output.get("data", {})
        ]

    def _outputs(self):
        for cell in self.notebook.cells:
            yield from cell.get("outputs", [])


@contextmanager
def executed(name, *, timeout=1800.0, **parameters):
    """Execute ``notebooks/<name>.ipynb`` in a copy of the folder, with jobs in a data directory of its own.

    ``parameters`` overrule what the cell tagged "parameters" assigns. ``timeout`` is for each cell, in seconds. A cell
    that raises fails the test with that cell's traceback.
    """
    notebook = nbformat.reads(stripped((NOTEBOOKS / f"{name}.ipynb").read_text()), as_version=4)
    inject(notebook, parameters)
    folder = Path(tempfile.mkdtemp(prefix="notebook-"))
    try:
        client = _client(notebook, folder, timeout)
        with client.setup_kernel(env=_environment(folder)):
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
            yield Execution(client, folder)
        # Neither a job's agent nor what a cell started outlives the notebook's kernel.
        until(lambda: not processes_naming(str(folder)))
    finally:
        # Of a notebook that failed jobs may go on; they end with their folders.
        shutil.rmtree(folder, ignore_errors=True)


def _client(notebook, folder, timeout):
    place = shutil.copytree(NOTEBOOKS, folder / "notebooks", ignore=shutil.ignore_patterns("__pycache__"))
    return NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(place)}},
        # Sockets in the folder instead of ports, which another test may take meanwhile.
        config=Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"}),
    )


def inject(notebook, parameters):
    """Put a cell that assigns the parameters after the one that says what they are by default."""
    if not parameters:
        return
    index, cell = next(
        (index, cell) for index, cell in enumerate(notebook.cells) if PARAMETERS in cell.metadata.get("tags", ())
    )
    unknown = set(parameters) - assigned(cell.source)
    assert not unknown, f"the parameters cell does not assign {', '.join(sorted(unknown))}"
    source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    notebook.cells.insert(index + 1, nbformat.v4.new_code_cell(source, metadata={"tags": [INJECTED]}))


def assigned(source):
    return {
        target.id
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def figures(lines, start):
    """Give the ``name=value`` of each line that begins with what the pattern matches."""
    return [dict(re.findall(r"(\S+)=(\S+)", line)) for line in lines if re.match(start, line)]


def _environment(folder):
    """Give the kernel's variables: nothing of the person who runs the tests, neither jobs nor settings."""
    return {
        **os.environ, "SCRIPTMODE_DATA_DIR": str(folder / "data"), "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": str(folder / "matplotlib"),
    }  # fmt: skip


def _text(output):
    if output["output_type"] == "stream":
        return str(output["text"])
    shown = output.get("data", {}).get("text/plain")
    return f"{shown}\n" if shown else ""
