"""Which tests a run has: its tier.

=============  ==================================================================================================
``test``       What needs neither root, Docker, Slurm nor Kubernetes and does not take long: ``make test``.
``rest``       What ``all`` has in addition, the cheapest first: root, Docker, Slurm, Kubernetes and those marked ``long``.
``all``        Both: ``make test-all``, and a run without the option.
``thorough``   Also every cell of the matrices: ``make test-thorough``.
=============  ==================================================================================================
"""

from __future__ import annotations

import os

import pytest

TIERS = ("test", "rest", "all", "thorough")
#: Markers of what the tier ``test`` leaves out, in the order in which ``rest`` runs them.
REST = ("root", "long", "slurm", "kubernetes", "docker")
#: Directories and files whose tests wait longest. They start first: at the end of a run they would wait alone.
WAITING = (
    "tests/sagemaker_sdk/", "tests/notebooks/", "tests/serve/", "tests/both_ways/", "tests/engines/",
    "tests/data_path/", "tests/docs/", "tests/sdk/test_local_tuning.py", "tests/processes/",
)  # fmt: skip


def selects(tier: str, markers: set[str]) -> bool:
    """Return whether a tier has a test with these markers."""
    if "thorough" in markers and tier != "thorough":
        return False
    needs_more = bool(markers & set(REST))
    return {"test": not needs_more, "rest": needs_more}.get(tier, True)


def cost(markers: set[str]) -> int:
    """Return the place of a test with these markers in the order of a run: what needs most runs last."""
    return max((REST.index(marker) + 1 for marker in markers & set(REST)), default=0)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that the run's tier does not have, order the others by cost, and skip those without root."""
    tier = config.option.tier
    markers = {item: {marker.name for marker in item.iter_markers()} for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not selects(tier, markers[item])])
    selected = [item for item in items if selects(tier, markers[item])]
    items[:] = sorted(selected, key=lambda item: (cost(markers[item]), not item.nodeid.startswith(WAITING)))
    for item in items:
        if "root" in markers[item] and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip("needs root"))
