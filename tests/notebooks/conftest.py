import os

# Read when Jupyter is first imported: the versions for Python 3.9 warn of paths that they are about to leave.
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")

from containers.conftest import base_image, built, docker_daemon  # noqa: F401 - for the notebook that needs them
