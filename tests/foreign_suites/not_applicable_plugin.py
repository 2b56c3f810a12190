"""Skip the tests whose names ``SCRIPTMODE_FOREIGN_SKIP`` has, a list of patterns in JSON."""

import json
import os
from fnmatch import fnmatchcase

import pytest


def pytest_collection_modifyitems(items):
    patterns = json.loads(os.environ["SCRIPTMODE_FOREIGN_SKIP"])
    for item in items:
        if any(fnmatchcase(item.nodeid.partition("[")[0], pattern) for pattern in patterns):
            item.add_marker(pytest.mark.skip(reason="not applicable"))
