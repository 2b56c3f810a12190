"""A Python package as the source of a job, which runs one of its modules by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scriptmode import SourceError
from scriptmode.core.text.messages import did_you_mean

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
    if not package.exists():
        beside = [path.parent.name for path in sorted(package.parent.glob("*/__init__.py"))]
        advice = did_you_mean(package.name, beside) or "name the directory that contains the modules"
        raise SourceError(f"--package-path {str(package_path)!r} does not exist", advice=advice)
    if not (package / "__init__.py").is_file():
        raise SourceError(
            f"--package-path {str(package_path)!r} is not a Python package: it has no __init__.py",
            advice="name the directory that contains the modules, or create that file",
        )
    entry_point = _module_file(package, module)
    if (package.parent / "setup.py").is_file():
        return {"source_dir": str(package.parent), "entry_point": entry_point.relative_to(package.parent).as_posix()}
    launcher = directory / LAUNCHER
    launcher.write_text(_LAUNCHER_TEXT.format(module=module), encoding="utf-8")
    return {"entry_point": str(launcher), "dependencies": [str(package)]}


def _module_file(package: Path, module: str) -> Path:
    first, *rest = module.split(".")
    if first != package.name or not all(map(str.isidentifier, rest)):
        raise SourceError(
            f"--module-name {module!r} is not a module of the package {package.name!r}",
            advice=f"write the package and the module, such as {package.name}.task",
        )
    path = package.joinpath(*rest)
    for candidate in (path.with_suffix(".py"), path / "__main__.py"):
        if rest and candidate.is_file():
            return candidate
    names = (each.relative_to(package).with_suffix("").as_posix() for each in sorted(package.rglob("*.py")))
    modules = tuple(f"{package.name}.{name.replace('/', '.')}" for name in names if not name.endswith("__init__"))
    advice = did_you_mean(module, modules) or "name one of its files"
    raise SourceError(f"--module-name {module!r} is not in {str(package)!r}", advice=advice)
