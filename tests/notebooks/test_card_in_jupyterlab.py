"""What a person sees of a running job in JupyterLab, whose style sheet changes what a browser makes of HTML."""

import shutil

import nbformat
import pytest
from fakes.processes import processes_naming, until
from notebooks.jupyter_lab import DARK, LIGHT, notebook_page
from notebooks.recording import METADATA

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(3600)]
SCRIPT = """
import os, time
for step in range(400):
    print(f"step {{step}}: loss={{1 / (1 + step):.4f}}", flush=True)
while not os.path.exists({end!r}):
    time.sleep(0.1)
"""
CELL = """
from pathlib import Path
from scriptmode import Estimator
Path("train.py").write_text({script!r})
job = Estimator(
    entry_point="train.py", instance_type="local_process", base_job_name="shown", max_run=300,
    metric_definitions=[{{"Name": "loss", "Regex": "loss=([0-9.]+)"}}],
).fit()
"""
#: The height of the log's last line, what could clip it, and how much of that does.
LAST_LINE = """(() => {
    const box = [...document.querySelectorAll('.jp-OutputArea pre')].find(each => each.innerText.includes('step 399'));
    if (!box) return null;
    const range = document.createRange(), last = box.lastChild;
    range.setStart(last, last.data.lastIndexOf('algo-1 | step 399')), range.setEnd(last, last.data.trimEnd().length);
    const line = range.getBoundingClientRect(), clips = [];
    for (let each = box; !each.matches('.jp-OutputArea'); each = each.parentElement)
        if (getComputedStyle(each).overflowY !== 'visible') clips.push(each.getBoundingClientRect());
    const clipping = clips.filter(clip => line.top < clip.top - 1 || line.bottom > clip.bottom + 1);
    return {height: line.height, clips: clips.length, clipping: clipping.length};
})()"""
#: Whether a theme is shown; between two of them nothing has a height.
SHOWN = "document.body.dataset.jpThemeName === '%s' && !document.querySelector('#jupyterlab-splash')"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A notebook in JupyterLab that follows a job, whose script has printed its last line and still runs."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    end = folder / "end"
    cell = nbformat.v4.new_code_cell(CELL.format(script=SCRIPT.format(end=str(end))).strip())
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=METADATA), folder / "shown.ipynb")
    try:
        with notebook_page(folder, "shown.ipynb", {"SCRIPTMODE_DATA_DIR": str(folder / "data")}) as page:
            page.value("window.jupyterapp.commands.execute('notebook:run-all-cells'), true")
            until(lambda: page.value(LAST_LINE))
            yield page
        end.touch()
        until(lambda: not processes_naming(str(folder)))
    finally:
        end.touch()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_last_line_of_the_log_is_visible_and_the_card_offers_what_can_be_run_next(page):
    for theme in (LIGHT, DARK):
        page.command("apputils:change-theme", theme=theme)
        until(lambda shown=SHOWN % theme: page.value(shown))
        line = page.value(LAST_LINE)
        assert line["height"] > 5
        assert line["clipping"] == 0 < line["clips"]
    offered = page.value("[...document.querySelectorAll('.jp-OutputArea code')].map(each => each.innerText)")
    assert offered[0] == "job.plot()"
    assert offered[1].startswith("scriptmode logs -f shown-")
