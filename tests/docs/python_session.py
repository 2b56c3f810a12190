"""Run the Python blocks of a document one after another in one namespace; each is a line of JSON, and so is its answer."""

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
    said = io.StringIO()
    failure = None
    try:
        with contextlib.redirect_stdout(said):
            # The traceback gets the line numbers of the document.
            exec(compile("\n" * block["line"] + block["code"], "document", "exec"), document.__dict__)
    except Exception:
        failure = f"{said.getvalue()}{traceback.format_exc()}"
    answers.write(json.dumps({"failure": failure}) + "\n")
    answers.flush()
