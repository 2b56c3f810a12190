"""The modules that the docstring of a package lists are in it."""

import ast
import re

from tests.house import sources
from tests.house.offenders import expect_none

#: A line of a list: ``* ``one``, ``two``: what they do``, ``- `one`: ...``, or ``one   what it does``.
_BULLET = re.compile(r"^\s*[-*] (`[^:]*`)(?=:|$)")
_COLUMN = re.compile(r"^([a-z_]\w*(?:, \w+)*)(?:  +|: )\S")
#: A further module in the same line: ``; `other`: ...``.
_FURTHER = re.compile(r"; `{0,2}(\w+)`{0,2}: ")


def listed(docstring):
    """The names of modules that a docstring lists."""
    for line in docstring.splitlines():
        if found := _BULLET.match(line):
            yield from re.findall(r"`(\w+)`", found[1])
        elif found := _COLUMN.match(line.strip()):
            yield from found[1].split(", ")
        else:
            continue
        yield from _FURTHER.findall(line)


def test_a_package_has_the_modules_that_its_docstring_lists():
    missing = []
    for source in sources.product():
        folder = (sources.ROOT / source.path).parent
        if source.path.endswith("/__init__.py"):
            names = listed(ast.get_docstring(source.tree) or "")
            missing += [
                f"{source.path}: {name}"
                for name in names
                if not (folder / f"{name}.py").exists() and not (folder / name).is_dir()
            ]
    expect_none(missing, "write the name that the module has now")
