"""The suites of clients: what the guide promises of them, and what they find wrong."""

from pathlib import Path

import pytest
from tests.foreign_suites.clients_suite import CLIENTS

GUIDE = Path(__file__).parents[2] / "sdk" / "docs" / "guides" / "serve.md"


@pytest.mark.parametrize("name", sorted(set(CLIENTS) - {"aws-cli"}))
def test_the_guide_lists_each_client_with_its_version(name):
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert any(row.startswith(f"| {CLIENTS[name].title} {CLIENTS[name].VERSION}, ") for row in rows)
