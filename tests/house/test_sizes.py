"""Files and functions stay readable."""

import ast

from tests.house import sources
from tests.house.offenders import expect_none

LINES_OF_A_FILE = 500
#: Without its signature and its docstring.
LINES_OF_A_FUNCTION = 40
#: A list of the parts of a job, one or a few lines each.
LONG_FUNCTIONS = {("sdk/scriptmode/spec/estimator_arguments.py", "to_spec"): 50}


def test_files_stay_small():
    files = [*sources.product(), *sources.read(sources.ROOT, "tests"), *sources.read(sources.ROOT, "notebooks")]
    found = [
        f"{source.path}: {lines} lines"
        for source in files
        if (lines := len(source.text.splitlines())) > LINES_OF_A_FILE
    ]
    expect_none(found, f"a file is one concept, up to {LINES_OF_A_FILE} lines")


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
