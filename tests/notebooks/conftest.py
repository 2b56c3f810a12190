import os

# Read when Jupyter is first imported: the versions for Python 3.9 warn of paths that they are about to leave.
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
