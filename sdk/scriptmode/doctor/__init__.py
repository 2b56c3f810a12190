"""What this machine has for training jobs, what is missing, and what to do about it.

A room of its own beside the public names of `scriptmode`, which does not load it.
"""

from scriptmode.doctor.check import Check, text
from scriptmode.doctor.check_runner import examine

__all__ = ["Check", "examine", "text"]
