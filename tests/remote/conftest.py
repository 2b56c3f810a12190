"""The engine "elsewhere", as if its package was installed."""

import os
from pathlib import Path

import pytest

from scriptmode._core.machine import entry_points


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory, monkeypatch):
    """Let this process and those that it starts find the engine."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "elsewhere.py").symlink_to(Path(__file__).with_name("elsewhere.py"))
    information = folder / "elsewhere-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[scriptmode.engines]\nelsewhere = elsewhere:ELSEWHERE\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("hosts")))
    entry_points.entry_points.cache_clear()
    yield
    entry_points.entry_points.cache_clear()
