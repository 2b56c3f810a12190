from containers.conftest import base_image, built, docker_daemon  # noqa: F401 - for the benchmark that needs them
