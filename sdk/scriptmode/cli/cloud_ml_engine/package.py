"""A Python package as a job's source, run by a module's name, and the arguments after ``--`` as hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode import SourceError
from scriptmode.messages import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

#: Beside the package in the source: what hosts start where no setup.py makes them run modules by name themselves.
LAUNCHER = "run_module.py"
_LAUNCHER_TEXT = '''"""Runs {module} by its name, as python -m does; written by scriptmode jobs submit training."""

import runpy

runpy.run_module("{module}", run_name="__main__", alter_sys=True)
'''


def source_arguments(package_path: Path, module: str, folder: Path) -> dict[str, Any]:
    """Give an estimator's arguments that pack a package and run one of its modules by name.

    A package beside a setup.py is installed with its requirements, as its whole parent folder. Without one the package
    alone is packed, with a program written into ``folder``, which the caller keeps until the job is submitted. Raises
    `SourceError` for what is no package and for a module that is not in it.
    """
    package = package_path.resolve()
    if not package.exists():
        beside = [path.parent.name for path in sorted(package.parent.glob("*/__init__.py"))]
        hint = did_you_mean(package.name, beside) if beside else "; name the folder that the modules are in"
        raise SourceError(f"--package-path {str(package_path)!r} is not there{hint}")
    if not (package / "__init__.py").is_file():
        raise SourceError(
            f"--package-path {str(package_path)!r} is no Python package: it has no __init__.py; "
            "name the folder that the modules are in, or create that file"
        )
    entry_point = _module_file(package, module)
    if (package.parent / "setup.py").is_file():
        return {"source_dir": str(package.parent), "entry_point": entry_point.relative_to(package.parent).as_posix()}
    launcher = folder / LAUNCHER
    launcher.write_text(_LAUNCHER_TEXT.format(module=module), encoding="utf-8")
    return {"entry_point": str(launcher), "dependencies": [str(package)]}


def _module_file(package: Path, module: str) -> Path:
    first, *rest = module.split(".")
    if first != package.name or not all(map(str.isidentifier, rest)):
        raise SourceError(
            f"--module-name {module!r} is no module of the package {package.name!r}; "
            f"name one with its package, such as {package.name}.task"
        )
    path = package.joinpath(*rest)
    for candidate in (path.with_suffix(".py"), path / "__main__.py"):
        if rest and candidate.is_file():
            return candidate
    names = (each.relative_to(package).with_suffix("").as_posix() for each in sorted(package.rglob("*.py")))
    modules = tuple(f"{package.name}.{name.replace('/', '.')}" for name in names if not name.endswith("__init__"))
    raise SourceError(f"--module-name {module!r} is not in {str(package)!r}{did_you_mean(module, modules)}")
