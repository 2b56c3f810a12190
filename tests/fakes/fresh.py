"""Work in an interpreter without threads: the processes of tests have some, and the product refuses to fork in them."""

import os
import pickle
import select
import subprocess
import sys
import traceback

#: The longest work, which is what agents do between two looks at their children.
SECONDS = 240.0
_START = "import sys; sys.path[:] = {!r}; from fakes import fresh; fresh.serve()"


class Interpreter:
    """Calls functions of modules, with arguments that can be pickled, in one other process."""

    def __init__(self):
        self._process = subprocess.Popen(
            (sys.executable, "-c", _START.format(sys.path)), bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def call(self, function, *arguments):
        """Return what the function returns there, with this process's environment; or raise what it raises."""
        with os.fdopen(os.dup(self._process.stdin.fileno()), "wb") as file:
            pickle.dump((dict(os.environ), function, arguments), file)
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            self.close()
            raise TimeoutError(f"{function} did not return within {SECONDS} s")
        value, error, stack = pickle.load(self._process.stdout)
        if error is not None:
            error.__cause__ = RuntimeError(stack)
            raise error
        return value

    def close(self):
        """End it, and what it forked."""
        with self._process as process:
            process.kill()


def call(function, *arguments):
    """Call one function as `Interpreter.call` in an interpreter of its own."""
    interpreter = Interpreter()
    try:
        return interpreter.call(function, *arguments)
    finally:
        interpreter.close()


def serve():
    """Answer the calls until the input ends."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    while True:
        try:
            environment, function, arguments = pickle.load(calls)
        except EOFError:
            return
        os.environ.clear()
        os.environ.update(environment)
        try:
            answer = (function(*arguments), None, "")
        except Exception as error:
            answer = (None, error, traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()
