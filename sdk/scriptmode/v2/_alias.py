"""The import alias: while it is active, ``import sagemaker`` gives modules whose names are scriptmode's own objects.

A finder before all others on `sys.meta_path` answers for ``sagemaker`` and everything below it, so that an installed
``sagemaker`` package is not imported meanwhile. The modules are packages without files; a name is looked up at its
first use. What scriptmode does not have can be imported all the same, since notebooks import what they use after
training in the cell of all imports; `NotIncludedError` is raised when it is used.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Union

from scriptmode._core.text.messages import Problem
from scriptmode.errors import NotIncludedError
from scriptmode.v2 import _name_table as name_table


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of `names.COUNTERPARTS` and `names.NOT_INCLUDED`, and refuses others of ``sagemaker``."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a module of sagemaker; raise `NotIncludedError` for one that is not known."""
        if not _is_of_sagemaker(fullname):
            return None
        if fullname not in name_table.COUNTERPARTS and not name_table.not_included_row(fullname):
            # Without `name`, as `from module import name` replaces the error of that name with a text of its own.
            module = fullname.rpartition(".")[0]
            raise NotIncludedError(f"scriptmode has no {fullname}", name_table.advise(fullname, _names(module)))
        # A package, so that `from module import name` asks this finder for a name that the module does not have.
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Add to a module what looks its names up."""
        name = module.__name__
        vars(module).update(
            __doc__=f"{name} of the SageMaker SDK v2, as scriptmode has it.",
            __all__=sorted(name_table.COUNTERPARTS.get(name, ())),
            __getattr__=partial(_get, module),
            __dir__=partial(_names, name),
        )
        if name == name_table.ROOT:
            vars(module)["__version__"] = name_table.VERSION


class _NotIncluded:
    """A name of sagemaker that scriptmode does not have: its use raises `NotIncludedError`.

    It can stand in annotations. ``isinstance`` is false, since its class has no instances.
    """

    def __init__(self, dotted: str) -> None:
        self._dotted = dotted

    def __repr__(self) -> str:
        return f"<{self._dotted}, which scriptmode does not have>"

    def __call__(self, *_: object, **__: object) -> Any:
        raise NotIncludedError(f"scriptmode has no {self._dotted}", name_table.advise(self._dotted))

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __or__(self, other: Any) -> Any:
        return Union[self, other]

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]

    def __mro_entries__(self, bases: object) -> Any:
        return self()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self()


def activate() -> None:
    """Start the alias; without effect where it is active.

    Raises:
        NotIncludedError: If another ``sagemaker`` is imported already.
    """
    loaded = sys.modules.get(name_table.ROOT)
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if loaded is not None:
        where = getattr(loaded, "__file__", None) or "an unknown file"
        what = f"scriptmode.v2 cannot stand for sagemaker, which is already imported from {where}"
        raise NotIncludedError(what, "load it before the first import of sagemaker: in a notebook, restart the kernel")
    sys.meta_path.insert(0, _Finder())


def deactivate() -> None:
    """Stop the alias: the next ``import sagemaker`` imports the installed package."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for name in [name for name in sys.modules if _is_of_sagemaker(name)]:
        del sys.modules[name]


def _is_of_sagemaker(name: str) -> bool:
    return name == name_table.ROOT or name.startswith(f"{name_table.ROOT}.")


def _names(module: str) -> list[str]:
    below = [name.rpartition(".")[2] for name in name_table.COUNTERPARTS if name.rpartition(".")[0] == module]
    return sorted([*name_table.COUNTERPARTS.get(module, ()), *below])


def _get(module: ModuleType, name: str) -> Any:
    """Return a name of a module of sagemaker; raise ``AttributeError`` for one that is not known."""
    dotted = f"{module.__name__}.{name}"
    if own := name_table.COUNTERPARTS.get(module.__name__, {}).get(name):
        package, _, attribute = f"scriptmode.{own}".rpartition(".")
        value = getattr(import_module(package), attribute)
        vars(module)[name] = value
        return value
    if dotted in name_table.COUNTERPARTS:
        return import_module(dotted)
    if not name.startswith("__") and name_table.not_included_row(dotted):
        return _NotIncluded(dotted)
    advice = "" if name.startswith("__") else name_table.advise(dotted, _names(module.__name__))
    raise AttributeError(str(Problem(f"module {module.__name__!r} of scriptmode.v2 has no attribute {name!r}", advice)))
