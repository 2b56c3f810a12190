"""Programs of the SageMaker SDK v2 without a change: ``import sagemaker`` gives scriptmode's own objects.

``python -m scriptmode.v2 PROGRAM`` runs a program so, ``%load_ext scriptmode.v2`` the cells of a notebook. Nothing of
this package is imported by ``import scriptmode``.
"""

from scriptmode.v2 import _alias as alias

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(_: object) -> None:
    """Start the alias, for ``%load_ext scriptmode.v2``.

    Raises:
        NotIncludedError: If the installed ``sagemaker`` is imported already.
    """
    alias.activate()


def unload_ipython_extension(_: object) -> None:
    """Stop the alias, for ``%unload_ext scriptmode.v2``."""
    alias.deactivate()
