"""A Python package as the source of a job, which runs one of its modules by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scriptmode import SourceError

#: The script that hosts start for a package without setup.py; it stands beside the package in the source archive. With
#: a setup.py the hosts run modules by name themselves.
LAUNCHER = "run_module.py"
_LAUNCHER_TEXT = '''"""Runs {module} by its name, as python -m does; written by scriptmode jobs submit training."""

import runpy

runpy.run_module("{module}", run_name="__main__", alter_sys=True)
'''


def source_arguments(package_path: Path, module: str, directory: Path) -> dict[str, Any]:
    """Return the estimator's arguments that pack a package and run one of its modules by name.

    If a setup.py stands beside the package, its whole parent directory is packed and installed with its requirements.
    Otherwise only the package is packed, with a script that is written to ``directory``, which the caller must keep
    until the job is submitted. Raises `SourceError` for a directory that is not a package, and for a missing module.
    """
    package = package_path.resolve()
    if not (package / "__init__.py").is_file():
        what = f"--package-path {str(package_path)!r} is not a Python package: it has no __init__.py"
        raise SourceError(what, advice="name the directory that contains the modules, or create that file")
    path = package.parent.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__main__.py")
    modules = [file for file in files if package in file.parents and file.is_file()]
    if not modules:
        what = f"--module-name {module!r} is not a module of the package {package.name!r}"
        raise SourceError(what, advice=f"write the package and the module, such as {package.name}.task")
    if (package.parent / "setup.py").is_file():
        return {"source_dir": str(package.parent), "entry_point": modules[0].relative_to(package.parent).as_posix()}
    launcher = directory / LAUNCHER
    launcher.write_text(_LAUNCHER_TEXT.format(module=module), encoding="utf-8")
    return {"entry_point": str(launcher), "dependencies": [str(package)]}
