"""The page of the arguments has every argument, with the field of the request that the code's table names."""

import re
from dataclasses import fields

from docs.documents import DOCS

from scriptmode.request.fields import FIELDS
from scriptmode.spec.estimator_arguments import EstimatorArguments

PAGE = (DOCS / "reference" / "arguments.md").read_text()
#: The arguments and the fields in each row of the page's tables.
ROWS = [
    (re.findall(r"`(\w+)`", cells[1]), re.findall(r"`([\w.]+)`", cells[4]))
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
]


def test_the_page_has_every_argument_once():
    assert sorted(name for names, _ in ROWS for name in names) == sorted(
        each.name for each in fields(EstimatorArguments)
    )


def test_an_argument_sets_the_field_that_the_page_names():
    paths = {row.argument: row.path for row in FIELDS if row.argument}
    wrong = {}
    for names, told in ROWS:
        known = [paths[name] for name in names if name in paths]
        if known and told != known:
            wrong[", ".join(names)] = (told, known)
    assert not wrong


def test_each_argument_has_a_default():
    defaults = {
        cells[1]: cells[3].strip() for cells in (line.split("|") for line in PAGE.splitlines()) if len(cells) > 5
    }
    assert [name for name, default in defaults.items() if not default] == []
    assert "`False`" in defaults[" `use_spot_instances` "]
