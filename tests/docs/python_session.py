"""Runs the Python blocks of one document, one after another, in one namespace: a line of JSON each, and one back."""

import contextlib
import io
import json
import os
import sys
import traceback
import types

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
# A class or a test that a block defines finds its module.
document = types.ModuleType("__main__")
sys.modules["__main__"] = document
for line in sys.stdin:
    block = json.loads(line)
    said = io.StringIO()
    failure = None
    try:
        with contextlib.redirect_stdout(said):
            # Line numbers of the traceback are those of the document.
            exec(compile("\n" * block["line"] + block["code"], "document", "exec"), document.__dict__)
    except Exception:
        failure = f"{said.getvalue()}{traceback.format_exc()}"
    answers.write(json.dumps({"failure": failure}) + "\n")
    answers.flush()
