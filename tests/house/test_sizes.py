"""The product, its tests and what a call loads stay small, and functions stay readable."""

import ast
import subprocess

import pytest
from tests.house import loaded, sources
from tests.house.offenders import expect_none

#: The most lines of the product and of its tests. Nobody raises them: whoever adds takes away.
PRODUCT, TESTS = 60_000, 60_000
#: What is counted: tracked files with these endings, and scripts and Dockerfiles without one.
ENDINGS = (".py", ".cc", ".h", ".html", ".js", ".css", ".sh")
#: The most own lines that a call loads.
LOADED = {"request": 5_650, "fit(wait=False)": 9_800, "fit": 10_750}
#: Without its signature and its docstring.
LINES_OF_A_FUNCTION = 40
#: A list of the parts of a job, one or a few lines each.
LONG_FUNCTIONS = {("sdk/scriptmode/_core/spec/estimator_arguments.py", "to_spec"): 50}


def is_source(path):
    """Whether a tracked file is counted."""
    if path.suffix:
        return path.suffix in ENDINGS
    return path.is_file() and (path.name == "Dockerfile" or path.read_bytes()[:2] == b"#!")


def lines(*folders):
    """Return the lines of the tracked sources below folders of the checkout, without the documentation."""
    command = ("git", "ls-files", "-z", "--", *folders)
    listed = subprocess.run(command, cwd=sources.ROOT, check=True, capture_output=True, text=True).stdout
    paths = [sources.ROOT / name for name in listed.split("\0") if name and not name.startswith("sdk/docs/")]
    return sum(path.read_bytes().count(b"\n") for path in paths if path.is_file() and is_source(path))


def test_the_product_and_its_tests_grow_no_more():
    assert lines("sdk", "entrypoints", "container", ".ci") <= PRODUCT
    assert lines("tests") <= TESTS


@pytest.mark.parametrize("call", loaded.CALLS)
def test_a_call_loads_few_lines_and_handles_its_request_once(call):
    found = loaded.measure(call)
    assert sum(found.lines.values()) <= LOADED[call]
    assert found.work["validated"] == found.work["looked up"] == 1
    if call == "fit(wait=False)":
        assert found.work == {"rendered": 1, "validated": 1, "looked up": 1}


def first_statement(function):
    return function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]


def test_functions_stay_small():
    found = [
        f"{source.path}:{node.lineno}: {node.name} has {lines} lines"
        for source in sources.product()
        for node in source.nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := node.end_lineno - first_statement(node).lineno + 1)
        > LONG_FUNCTIONS.get((source.path, node.name), LINES_OF_A_FUNCTION)
    ]
    expect_none(found, f"a function has up to {LINES_OF_A_FUNCTION} lines")
