"""TensorFlow's tutorials on distribution, their cells as programs on the hosts of a job, with few steps."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.foreign_suites import programs, sources
from tests.foreign_suites.programs import KERAS_DATA, Program

from scriptmode import MultiWorkerMirrored, ParameterServer

if TYPE_CHECKING:
    from pathlib import Path

#: The repository has no versions.
COMMIT = "7c3650212740204359d4ceae481abc79345541be"
VERSION = COMMIT[:9]
REPOSITORY = "tensorflow/docs"
FOLDER = "site/en/tutorials/distribute"
WORKERS = {"instance_count": 2, "distribution": MultiWorkerMirrored()}
#: What the tutorial's section "Clusters in the real world" says of the tasks that are not the coordinator.
REAL_CLUSTER = """cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster_resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        cluster_resolver.cluster_spec(), job_name=cluster_resolver.task_type, task_index=cluster_resolver.task_id,
        protocol="grpc",
    ).join()
"""
#: What each prints, its adaptations, and arguments of its job.
TUTORIALS = {
    "custom_training": (
        r"^Accuracy after restoring the saved model without strategy: ",
        (KERAS_DATA, ("EPOCHS = 10", "EPOCHS = 1")), {},
    ),
    "multi_worker_with_keras": (r"70/70.* loss: ", (KERAS_DATA, ("epochs=3", "epochs=1")), WORKERS),
    "multi_worker_with_ctl": (
        r"^Epoch: 0, accuracy: ", (KERAS_DATA, ("num_epochs = 3", "num_epochs = 1"), ("epoch=70", "epoch=10")), WORKERS,
    ),
    "parameter_server_training": (
        r"^Evaluation accuracy: ",
        (("import portpicker\n", ""), (r"cluster_resolver = create_in_process.*\n?", REAL_CLUSTER)),
        {"instance_count": 2, "distribution": ParameterServer(coordinator=True)},
    ),
}  # fmt: skip


def run(folder: Path) -> dict[str, str | None]:
    """Run the tutorials; return the failure of each, None of one that succeeded."""
    found = sources.repository(REPOSITORY, COMMIT) / FOLDER
    chosen = {
        name: Program(_files(found / f"{name}.ipynb"), printed, adaptations, job)
        for name, (printed, adaptations, job) in TUTORIALS.items()
    }
    return programs.run(folder, chosen)


def _files(notebook: Path) -> dict[str, str]:
    """Return the files that the cells write, ``main.py`` first; of a notebook that writes none, its cells as a program."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    written = dict(
        re.match(r"%%writefile (\S+)\n(.*)", text, re.DOTALL).groups() for text in texts if text.startswith("%%w")
    )
    if "main.py" in written:
        return {"main.py": written.pop("main.py"), **written}
    return {"main.py": "\n".join(re.sub(r"(?m)^[!%].*", "", text) for text in texts)}
