"""Checks of this machine for training jobs: what is installed, what is missing, and what to do about it.

Public are the names in ``__all__``; ``import scriptmode`` does not import this package.
"""

from scriptmode.doctor._check_runner import Check, engine_checks, examine

__all__ = ["Check", "engine_checks", "examine"]
