"""Jobs of each engine: every test of this directory runs with all of them."""

import pytest
from containers.conftest import base_image, docker_daemon, runtime_image  # noqa: F401 - fixtures
from engines.engines import ENGINES, EngineUnderTest
from fakes.installed import require_mounts
from fakes.local_jobs import channel
from kubernetes.conftest import running_cluster
from slurm.conftest import cluster  # noqa: F401 - a fixture


def pytest_itemcollected(item):
    """Give each test the time to start a cluster or to make an image first; train on one engine unless thorough."""
    item.add_marker(pytest.mark.slow)
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(1200))
    engine = _parameters(item).get("engine")
    if isinstance(engine, EngineUnderTest) and (reason := engine.expected_failures.get(item.originalname)):
        item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
    if item.get_closest_marker("tf") and isinstance(engine, EngineUnderTest) and engine is not ENGINES[0]:
        item.add_marker(pytest.mark.thorough)


def pytest_collection_modifyitems(items):
    """Leave out what an engine has not, such as TensorFlow, and what it names."""
    items[:] = [item for item in items if not _is_impossible(item)]


def _is_impossible(item):
    engine = _parameters(item).get("engine")
    if not isinstance(engine, EngineUnderTest):
        return False
    if item.get_closest_marker("tf") and not engine.has_tensorflow:
        return True
    if {item.path.stem, item.originalname} & engine.left_out.keys():
        return True
    return "s3" in _parameters(item).get("received", ()) and not engine.has_loopback


def _parameters(item):
    return getattr(getattr(item, "callspec", None), "params", {})


@pytest.fixture(scope="module", params=[pytest.param(each, id=each.name, marks=each.marks) for each in ENGINES])
def engine(request):
    """An engine under test."""
    return request.param


@pytest.fixture(scope="package")
def kubernetes_cluster(tmp_path_factory):
    """Two nodes of Kubernetes for the files of this directory."""
    yield from running_cluster(tmp_path_factory)


@pytest.fixture(scope="module")
def channels(jobs):
    """A channel that is mounted and one that is a FIFO."""
    require_mounts()
    folder = jobs.folder / "two channels"
    folder.mkdir()
    (folder / "part").write_bytes(bytes(100_000))
    return [channel(mode, folder.as_uri(), InputMode=mode) for mode in ("FastFile", "Pipe")]


@pytest.fixture(scope="module")
def jobs(engine, request, tmp_path_factory):
    """The jobs of an engine that the tests of a file share."""
    with engine.open_jobs(request, tmp_path_factory.mktemp("jobs")) as started:
        yield started
