"""Names that the reference documented in packages whose modules define them now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def moved_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Create a package's ``__getattr__``, which returns names of `modules` with a ``DeprecationWarning``.

    `modules` contains the module to import each name from.
    """

    def get_moved(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import warnings
        from importlib import import_module

        warning = f"{package}.{name} was moved: import it from {modules[name]}"
        warnings.warn(warning, DeprecationWarning, stacklevel=2)
        return getattr(import_module(modules[name]), name)

    return get_moved
