"""Run the Python blocks of a document one after another in one namespace, as an interactive session does.

Each block is a line of JSON; so is its answer: what each statement printed, with its first and last line, and the failure.
"""

import ast
import contextlib
import io
import json
import os
import sys
import traceback
import types

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
# Classes and tests that a block defines need their module in sys.modules.
document = types.ModuleType("__main__")
sys.modules["__main__"] = document
for line in sys.stdin:
    block = json.loads(line)
    printed = []
    failure = None
    output = io.StringIO()
    try:
        # The traceback gets the line numbers of the document.
        for statement in ast.parse("\n" * block["line"] + block["code"], "document").body:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                # The value of an expression is printed, too.
                exec(compile(ast.Interactive([statement]), "document", "single"), document.__dict__)
            printed.append([statement.lineno, statement.end_lineno, output.getvalue()])
    except Exception:
        failure = f"{output.getvalue()}{traceback.format_exc()}"
    answers.write(json.dumps({"printed": printed, "failure": failure}) + "\n")
    answers.flush()
