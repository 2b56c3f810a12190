"""A training program that writes down how it was started, into ``$RECORD``, and ends with ``$END_WITH``.

Shell scripts call it with their own words: ``"$PYTHON" "$RECORDER" "$0" "$@"``.
"""

import json
import os
import sys
from pathlib import Path

#: The folder of this job, whose parts both launchers make or fill.
BASE = Path(os.environ["SAGEMAKER_BASE_DIR"])
#: What pip and Python leave in a source folder.
LEFT = {"__pycache__", "build", "own.egg-info"}


def listing(folder):
    """Every file below the folder, with an x in front if it may be run."""
    files = [path for path in folder.rglob("*") if path.is_file() and not LEFT & {*path.relative_to(folder).parts}]
    return sorted(f"{'x' if os.access(path, os.X_OK) else '-'} {path.relative_to(folder)}" for path in files)


def installed():
    try:
        import wanted
    except ImportError:
        return None
    return wanted.__name__


record = {
    "argv": sys.argv[1:] if Path(sys.argv[0]).name == "record.py" else sys.argv,
    "cwd": str(Path.cwd()),
    "modules from": sys.path[0],
    "env": dict(os.environ),
    "code": listing(BASE / "code"),
    "folders": [name for name in ("model", "output/data", "output/intermediate") if (BASE / name).is_dir()],
    "required": installed(),
}
if os.environ.get("OWN_FAILURE"):
    (BASE / "output" / "failure").write_text(os.environ["OWN_FAILURE"])
Path(os.environ["RECORD"]).write_text(json.dumps(record))
sys.exit(int(os.environ.get("END_WITH", "0")))
